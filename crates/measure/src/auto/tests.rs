//! The script on a device in memory.
