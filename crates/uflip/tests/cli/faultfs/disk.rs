//! A small file system in memory that knows what a power cut would leave.
//!
//! Model: every file and folder has its contents now, what is durable, and the
//! changes in between. `fsync` makes a file's bytes durable, `fsync` of a folder
//! its names; neither does the other's work. A power cut keeps, of each file,
//! any of the changes in any order, one of them possibly torn at a sector, and
//! of each folder the first so many changes of names: what POSIX allows, less
//! than any file system in use does. Beside the bytes as stored stand the bytes
//! as they were meant, where a fault changed them on their way.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use uflip_device::rng::Rng;

pub type Ino = u64;
pub const ROOT: Ino = 1;
/// Power fails between two sectors, never within one.
const SECTOR: usize = 512;

#[derive(Clone)]
enum Change {
    Bytes { at: u64, bytes: Vec<u8> },
    Length(u64),
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Change::Bytes { at, bytes } => put(to, *at, bytes),
            Change::Length(length) => to.resize(*length as usize, 0),
        }
    }
}

fn put(to: &mut Vec<u8>, at: u64, bytes: &[u8]) {
    let (from, end) = (at as usize, at as usize + bytes.len());
    if to.len() < end {
        to.resize(end, 0);
    }
    to[from..end].copy_from_slice(bytes);
}

/// A regular file.
#[derive(Clone, Default)]
pub struct File {
    pub now: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
    /// As the writer meant it; `None` where that is what is stored.
    meant: Option<Vec<u8>>,
}

impl File {
    /// The bytes that were handed over, before any fault.
    pub fn meant(&self) -> &[u8] {
        self.meant.as_deref().unwrap_or(&self.now)
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        if let Some(meant) = &mut self.meant {
            change.apply(meant);
        }
        self.pending.push(change);
    }

    /// Writes `bytes`, of which bit `flip` arrives the other way round.
    pub fn write(&mut self, at: u64, bytes: &[u8], flip: Option<u64>) {
        let Some(flip) = flip.filter(|_| !bytes.is_empty()) else {
            return self.change(Change::Bytes { at, bytes: bytes.to_vec() });
        };
        let mut meant = self.meant().to_vec();
        put(&mut meant, at, bytes);
        let mut stored = bytes.to_vec();
        flip_bit(&mut stored, flip);
        self.change(Change::Bytes { at, bytes: stored });
        self.meant = Some(meant);
    }

    pub fn set_length(&mut self, length: u64) {
        self.change(Change::Length(length));
    }

    pub fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            change.apply(&mut self.durable);
        }
    }

    fn power_cut(&mut self, rng: &mut Rng) {
        let mut left: Vec<Change> =
            std::mem::take(&mut self.pending).into_iter().filter(|_| rng.below(2) == 0).collect();
        if rng.below(2) == 0 {
            for i in (1..left.len()).rev() {
                left.swap(i, rng.below(i as u64 + 1) as usize);
            }
        }
        if let Some(Change::Bytes { bytes, .. }) = left.last_mut() {
            let sectors = bytes.len().div_ceil(SECTOR) as u64;
            bytes.truncate(SECTOR * rng.below(sectors + 1) as usize);
        }
        left.iter().for_each(|change| change.apply(&mut self.durable));
        self.now = self.durable.clone();
        self.meant = None;
    }
}

/// Turns bit `bit`, counted round and round, of `bytes`.
pub fn flip_bit(bytes: &mut [u8], bit: u64) {
    if !bytes.is_empty() {
        let at = bit % (bytes.len() as u64 * 8);
        bytes[(at / 8) as usize] ^= 1 << (at % 8);
    }
}

#[derive(Clone)]
enum NameChange {
    Put(OsString, Ino),
    Remove(OsString),
    Rename(OsString, OsString),
}

impl NameChange {
    fn apply(&self, to: &mut BTreeMap<OsString, Ino>) {
        match self {
            NameChange::Put(name, ino) => drop(to.insert(name.clone(), *ino)),
            NameChange::Remove(name) => drop(to.remove(name)),
            NameChange::Rename(from, into) => {
                if let Some(ino) = to.remove(from) {
                    to.insert(into.clone(), ino);
                }
            }
        }
    }
}

/// A folder.
#[derive(Clone, Default)]
pub struct Folder {
    pub now: BTreeMap<OsString, Ino>,
    durable: BTreeMap<OsString, Ino>,
    pending: Vec<NameChange>,
}

impl Folder {
    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.now);
        self.pending.push(change);
    }

    pub fn put(&mut self, name: &OsStr, ino: Ino) {
        self.change(NameChange::Put(name.to_owned(), ino));
    }

    pub fn remove(&mut self, name: &OsStr) {
        self.change(NameChange::Remove(name.to_owned()));
    }

    pub fn rename(&mut self, from: &OsStr, into: &OsStr) {
        self.change(NameChange::Rename(from.to_owned(), into.to_owned()));
    }

    pub fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            change.apply(&mut self.durable);
        }
    }

    fn power_cut(&mut self, rng: &mut Rng) {
        let kept = rng.below(self.pending.len() as u64 + 1) as usize;
        let pending = std::mem::take(&mut self.pending);
        pending[..kept].iter().for_each(|change| change.apply(&mut self.durable));
        self.now = self.durable.clone();
    }
}

#[derive(Clone)]
pub enum Node {
    File(File),
    Folder(Folder),
}

/// The whole file system.
#[derive(Clone)]
pub struct Disk {
    nodes: BTreeMap<Ino, Node>,
    next: Ino,
}

impl Disk {
    pub fn new() -> Disk {
        Disk { nodes: BTreeMap::from([(ROOT, Node::Folder(Folder::default()))]), next: ROOT + 1 }
    }

    pub fn node(&mut self, ino: Ino) -> Option<&mut Node> {
        self.nodes.get_mut(&ino)
    }

    pub fn file(&mut self, ino: Ino) -> Option<&mut File> {
        match self.node(ino)? {
            Node::File(file) => Some(file),
            Node::Folder(_) => None,
        }
    }

    pub fn folder(&mut self, ino: Ino) -> Option<&mut Folder> {
        match self.node(ino)? {
            Node::Folder(folder) => Some(folder),
            Node::File(_) => None,
        }
    }

    /// The node called `name` in folder `parent`.
    pub fn named(&mut self, parent: Ino, name: &OsStr) -> Option<Ino> {
        self.folder(parent)?.now.get(name).copied()
    }

    /// A new node in `parent`.
    pub fn make(&mut self, parent: Ino, name: &OsStr, node: Node) -> Option<Ino> {
        let ino = self.next;
        self.folder(parent)?.put(name, ino);
        self.nodes.insert(ino, node);
        self.next += 1;
        Some(ino)
    }

    /// What is left after the power failed now.
    pub fn power_cut(&mut self, rng: &mut Rng) {
        for node in self.nodes.values_mut() {
            match node {
                Node::File(file) => file.power_cut(rng),
                Node::Folder(folder) => folder.power_cut(rng),
            }
        }
        let known: Vec<Ino> = self.nodes.keys().copied().collect();
        for node in self.nodes.values_mut() {
            if let Node::Folder(folder) = node {
                folder.now.retain(|_, ino| known.contains(ino));
                folder.durable = folder.now.clone();
            }
        }
    }

    /// The bytes at a path such as `out/runs.ndjson`, and what is durable of them.
    pub fn at(&mut self, path: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        let ino = path.split('/').try_fold(ROOT, |parent, name| self.named(parent, OsStr::new(name)))?;
        self.file(ino).map(|file| (file.now.clone(), file.durable.clone()))
    }

    /// Copies everything below `ino` into the real folder `into`: as stored, or
    /// as meant.
    pub fn copy_out(&mut self, ino: Ino, into: &Path, meant: bool) {
        let Some(folder) = self.folder(ino) else { return };
        std::fs::create_dir_all(into).expect("a folder for the copy");
        for (name, ino) in folder.now.clone() {
            let to = into.join(&name);
            match self.node(ino) {
                Some(Node::Folder(_)) => self.copy_out(ino, &to, meant),
                Some(Node::File(file)) => {
                    let bytes = if meant { file.meant() } else { &file.now };
                    std::fs::write(to, bytes).expect("room for the copy");
                }
                None => {}
            }
        }
    }
}
