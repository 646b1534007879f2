//! Every disk and partition of the machine, what it is used for, and why
//! writing to it would be refused: what `uflip devices` shows.

use super::sysfs::{Node, names};
use super::{DeviceFacts, SysPaths, block_facts};
use crate::safety::{self, Obstacle};
use serde::{Deserialize, Serialize};

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// What is known about it.
    pub facts: DeviceFacts,
    /// What it holds or is used for, each as a phrase: `mounted at /home`,
    /// `swap`, `holds ext4`; empty where nothing was found.
    pub used_for: Vec<String>,
    /// Where it was looked at for unknown contents, and the chance of a miss;
    /// `None` where something else says whose it is.
    #[serde(default)]
    pub looked: Option<String>,
    /// Why writing would be refused whatever is typed; `None` where it can be
    /// had by naming the device.
    pub refused: Option<String>,
    /// What to type to have it erased; `None` where it is refused.
    pub confirm: Option<String>,
}

/// All whole disks and partitions with a size, in the order of their names.
/// Does not claim any device, so one that another program holds exclusively
/// without a trace in sysfs is seen only when it is to be opened. Disks are
/// looked at side by side, as a slow one takes seconds.
pub fn list_devices(paths: &SysPaths) -> Vec<Listing> {
    let disks = names(paths.sys.join("block"));
    let nodes: Vec<Node> = disks.iter().filter_map(|name| Node::named(name, paths)).collect();
    std::thread::scope(|scope| {
        let begun: Vec<_> = nodes
            .iter()
            .map(|disk| std::thread::Builder::new().spawn_scoped(scope, || of_disk(disk, paths)))
            .collect();
        // Where there is no thread to be had, or one came to nothing, here.
        let looked = begun.into_iter().zip(&nodes).map(|(thread, disk)| {
            thread.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(|| of_disk(disk, paths))
        });
        looked.flatten().collect()
    })
}

/// A whole disk and its partitions.
fn of_disk(disk: &Node, paths: &SysPaths) -> Vec<Listing> {
    let partitions = disk.partitions();
    std::iter::once(disk).chain(&partitions).filter_map(|node| listing(node, paths)).collect()
}

fn listing(node: &Node, paths: &SysPaths) -> Option<Listing> {
    let path = node.dev_path(paths);
    let facts = block_facts(&path, node.number, None, paths);
    if facts.size_bytes.is_none_or(|size| size.0 == 0) {
        return None;
    }
    match safety::examine_unclaimed(&path, paths) {
        Ok(examination) => {
            let obstacles = examination.obstacles();
            let phrase = |obstacle: &Obstacle| obstacle.statement.clone();
            let absolute: Vec<String> = obstacles.iter().filter(|o| o.absolute).map(phrase).collect();
            let refused = (!absolute.is_empty()).then(|| absolute.join("; "));
            let confirm = refused.is_none().then(|| examination.what_to_type()).flatten();
            let used_for = obstacles.iter().map(phrase).collect();
            let looked = examination.looked();
            Some(Listing { facts: examination.facts().clone(), used_for, looked, refused, confirm })
        }
        Err(error) => {
            let refused = Some(error.to_string());
            Some(Listing { facts, used_for: Vec::new(), looked: None, refused, confirm: None })
        }
    }
}
