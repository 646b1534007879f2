//! The flash translation layer of a description: a kind, and the options that this
//! kind has.
//!
//! In a file the options stand side by side under `[ftl]`; [`Flat`] is that form and
//! the only place that knows it. An option of another kind is refused with the kinds
//! that have it, so that a description says nothing that has no effect.
//! `docs/device-file.md` tells what each does, from where, and which device asks for it.

use super::{GcPolicy, WearLevelling};
use serde::{Deserialize, Serialize};

/// The flash translation layer and its options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Flat")]
pub struct FtlOptions {
    /// Which one, with the options of its own.
    #[serde(flatten)]
    pub kind: FtlKind,
    /// Dies whose blocks make up one superblock; all where absent.
    pub superblock_dies: Option<u32>,
    /// Which free block is taken.
    pub wear_levelling: WearLevelling,
}

/// The kinds of flash translation layer, one file each in `src/ftl`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum FtlKind {
    /// Page-mapped.
    Page(PageOptions),
    /// Page-mapped with a demand-cached map.
    Dftl(DftlOptions),
    /// Log blocks, each of one superblock.
    Bast(BastOptions),
    /// Log shared by all superblocks.
    Fast(FastOptions),
    /// Block-mapped with in-order replacement blocks.
    Block(BlockOptions),
}

/// Page mapping.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageOptions {
    /// Spare capacity as a share of the usable capacity.
    pub over_provisioning: f64,
    /// How the victim is chosen.
    #[serde(flatten)]
    pub gc: GcPolicy,
    /// Keep pages that outlived a reclamation apart from new ones.
    pub hot_cold: bool,
    /// Reclaim in idle time up to this many free superblocks.
    pub idle_free_superblocks: u32,
}

/// Page mapping with a demand-cached map.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DftlOptions {
    /// As of page mapping.
    #[serde(flatten)]
    pub pages: PageOptions,
    /// RAM for the map, in KiB.
    pub map_cache_kib: u64,
}

/// Log blocks, each of one superblock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BastOptions {
    /// Log blocks (each one superblock).
    pub log_blocks: u32,
    /// Log blocks reclaimed at once, in parallel over the banks.
    pub merge_batch: u32,
    /// Log blocks that may belong to superblocks written at random; the others are
    /// for streams, that is for writes that go on where one of the last `log_blocks`
    /// ended. All where absent.
    pub random_logs: Option<u32>,
    /// The map's unit in KiB. A write that covers a unit in part has its superblock
    /// merged at once, and such merges do not work in parallel. A page where absent.
    pub unit_kib: Option<u64>,
    /// Such a write, where it is smaller than a unit and none goes on after it, also
    /// loses the order of the whole device: until each superblock was written anew,
    /// whole and in order, each is copied before it is, and no host write is done
    /// before what it left in logs is merged.
    pub loses_order: bool,
    /// A full log block that holds each page once takes the data block's place in any
    /// order; the order is kept in a map of the superblock.
    pub permuted_switch: bool,
    /// A write to a superblock's first page merges a log that is not in order, so that
    /// a stream begins with a fresh one.
    pub restart_merges: bool,
    /// Once all log blocks are taken, every newly opened one comes with a merge until
    /// none but it is left.
    pub repay_merges: bool,
    /// Full merges copy the log's pages one at a time, not row by row.
    pub page_wise_log_copy: bool,
}

/// A log shared by all superblocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FastOptions {
    /// The shared log, in KiB.
    pub log_kib: u64,
    /// Superblocks that may have pages in a log of either kind at once; the least
    /// recently written is merged for a new one. All where absent.
    pub log_superblocks: Option<u32>,
    /// Sequential log blocks (each one superblock).
    pub sequential_logs: u32,
}

/// Block mapping with in-order replacement blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockOptions {
    /// Replacement blocks open at once.
    pub open_blocks: u32,
}

impl FtlKind {
    /// As it is typed after `kind =`.
    pub fn name(&self) -> &'static str {
        match self {
            FtlKind::Page(_) => "page",
            FtlKind::Dftl(_) => "dftl",
            FtlKind::Bast(_) => "bast",
            FtlKind::Fast(_) => "fast",
            FtlKind::Block(_) => "block",
        }
    }

    /// What page mapping is asked for; `None` of the kinds that map superblocks.
    pub fn pages(&self) -> Option<&PageOptions> {
        match self {
            FtlKind::Page(pages) => Some(pages),
            FtlKind::Dftl(dftl) => Some(&dftl.pages),
            FtlKind::Bast(_) | FtlKind::Fast(_) | FtlKind::Block(_) => None,
        }
    }
}

/// Kinds as a file names them.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindName {
    Page,
    Dftl,
    Bast,
    Fast,
    Block,
}

/// Policies as a file names them.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum GcName {
    Greedy,
    CostBenefit,
    DChoices,
}

/// `[ftl]` as a file has it: the kind, and the options of all kinds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flat {
    kind: KindName,
    superblock_dies: Option<u32>,
    #[serde(default)]
    wear_levelling: WearLevelling,
    over_provisioning: Option<f64>,
    gc: Option<GcName>,
    gc_choices: Option<u32>,
    hot_cold: Option<bool>,
    idle_free_superblocks: Option<u32>,
    map_cache_kib: Option<u64>,
    log_blocks: Option<u32>,
    merge_batch: Option<u32>,
    random_logs: Option<u32>,
    unit_kib: Option<u64>,
    loses_order: Option<bool>,
    permuted_switch: Option<bool>,
    restart_merges: Option<bool>,
    repay_merges: Option<bool>,
    page_wise_log_copy: Option<bool>,
    log_kib: Option<u64>,
    log_superblocks: Option<u32>,
    sequential_logs: Option<u32>,
    open_blocks: Option<u32>,
}

/// An option that has no effect, with what to type instead.
#[derive(Debug, thiserror::Error)]
#[error("ftl.{key}: has no effect with {with}; {instead}")]
struct NoEffect {
    key: &'static str,
    with: String,
    instead: String,
}

impl Flat {
    /// Takes the options of page mapping out.
    fn pages(&mut self) -> Result<PageOptions, NoEffect> {
        let gc = match (self.gc.take(), self.gc_choices.take()) {
            (Some(GcName::DChoices), choices) => GcPolicy::DChoices { gc_choices: choices.unwrap_or(10) },
            (_, Some(_)) => {
                let instead = "type gc = \"d-choices\" or remove it".to_string();
                return Err(NoEffect { key: "gc_choices", with: "this gc".to_string(), instead });
            }
            (Some(GcName::CostBenefit), None) => GcPolicy::CostBenefit,
            (Some(GcName::Greedy) | None, None) => GcPolicy::Greedy,
        };
        Ok(PageOptions {
            over_provisioning: self.over_provisioning.take().unwrap_or(0.07),
            gc,
            hot_cold: self.hot_cold.take().unwrap_or(false),
            idle_free_superblocks: self.idle_free_superblocks.take().unwrap_or(0),
        })
    }

    fn bast(&mut self) -> Result<BastOptions, NoEffect> {
        let (unit_kib, loses_order) = (self.unit_kib.take(), self.loses_order.take());
        if loses_order == Some(true) && unit_kib.is_none() {
            let (with, instead) = ("a map of pages", "give ftl.unit_kib or remove it");
            return Err(NoEffect { key: "loses_order", with: with.into(), instead: instead.into() });
        }
        Ok(BastOptions {
            log_blocks: self.log_blocks.take().unwrap_or(4),
            merge_batch: self.merge_batch.take().unwrap_or(1),
            random_logs: self.random_logs.take(),
            unit_kib,
            loses_order: loses_order.unwrap_or(false),
            permuted_switch: self.permuted_switch.take().unwrap_or(false),
            restart_merges: self.restart_merges.take().unwrap_or(false),
            repay_merges: self.repay_merges.take().unwrap_or(false),
            page_wise_log_copy: self.page_wise_log_copy.take().unwrap_or(false),
        })
    }

    /// What was given and not taken, and the kinds that have it.
    fn left(&self) -> Option<(&'static str, &'static [&'static str])> {
        let (paged, bast, fast): (&[&str], &[&str], &[&str]) = (&["page", "dftl"], &["bast"], &["fast"]);
        let given: [(&str, bool, &[&str]); 19] = [
            ("over_provisioning", self.over_provisioning.is_some(), paged),
            ("gc", self.gc.is_some(), paged),
            ("gc_choices", self.gc_choices.is_some(), paged),
            ("hot_cold", self.hot_cold.is_some(), paged),
            ("idle_free_superblocks", self.idle_free_superblocks.is_some(), paged),
            ("map_cache_kib", self.map_cache_kib.is_some(), &["dftl"]),
            ("log_blocks", self.log_blocks.is_some(), bast),
            ("merge_batch", self.merge_batch.is_some(), bast),
            ("random_logs", self.random_logs.is_some(), bast),
            ("unit_kib", self.unit_kib.is_some(), bast),
            ("loses_order", self.loses_order.is_some(), bast),
            ("permuted_switch", self.permuted_switch.is_some(), bast),
            ("restart_merges", self.restart_merges.is_some(), bast),
            ("repay_merges", self.repay_merges.is_some(), bast),
            ("page_wise_log_copy", self.page_wise_log_copy.is_some(), bast),
            ("log_kib", self.log_kib.is_some(), fast),
            ("log_superblocks", self.log_superblocks.is_some(), fast),
            ("sequential_logs", self.sequential_logs.is_some(), fast),
            ("open_blocks", self.open_blocks.is_some(), &["block"]),
        ];
        given.into_iter().find(|(_, given, _)| *given).map(|(key, _, kinds)| (key, kinds))
    }
}

impl TryFrom<Flat> for FtlOptions {
    type Error = NoEffect;

    fn try_from(mut flat: Flat) -> Result<FtlOptions, NoEffect> {
        let kind = match flat.kind {
            KindName::Page => FtlKind::Page(flat.pages()?),
            KindName::Dftl => {
                let map_cache_kib = flat.map_cache_kib.take().unwrap_or(64);
                FtlKind::Dftl(DftlOptions { pages: flat.pages()?, map_cache_kib })
            }
            KindName::Bast => FtlKind::Bast(flat.bast()?),
            KindName::Fast => FtlKind::Fast(FastOptions {
                log_kib: flat.log_kib.take().unwrap_or(1024),
                log_superblocks: flat.log_superblocks.take(),
                sequential_logs: flat.sequential_logs.take().unwrap_or(1),
            }),
            KindName::Block => {
                FtlKind::Block(BlockOptions { open_blocks: flat.open_blocks.take().unwrap_or(1) })
            }
        };
        if let Some((key, kinds)) = flat.left() {
            let of = kinds.iter().map(|kind| format!("\"{kind}\"")).collect::<Vec<_>>().join(" or ");
            let instead = format!("remove it, or type kind = {of}");
            return Err(NoEffect { key, with: format!("kind = \"{}\"", kind.name()), instead });
        }
        Ok(FtlOptions { kind, superblock_dies: flat.superblock_dies, wear_levelling: flat.wear_levelling })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<FtlOptions, String> {
        toml::from_str(text).map_err(|e| e.message().to_string())
    }

    #[test]
    fn each_kind_refuses_the_options_of_the_others_by_name() {
        let bast = read("kind = \"bast\"\nlog_kib = 64").unwrap_err();
        assert_eq!(
            bast,
            "ftl.log_kib: has no effect with kind = \"bast\"; remove it, or type kind = \"fast\""
        );
        let fast = read("kind = \"fast\"\nhot_cold = false").unwrap_err();
        assert_eq!(
            fast,
            "ftl.hot_cold: has no effect with kind = \"fast\"; remove it, or type kind = \"page\" or \"dftl\""
        );
        assert!(read("kind = \"page\"\nmap_cache_kib = 64").unwrap_err().contains("\"dftl\""));
        assert!(read("kind = \"page\"\ngc_choices = 3").unwrap_err().contains("d-choices"));
        assert!(read("kind = \"bast\"\nloses_order = true").unwrap_err().contains("unit_kib"));
        assert!(read("kind = \"page\"\nlog_blox = 3").unwrap_err().contains("unknown field `log_blox`"));
    }

    /// What is written is the flat form again, of this kind's options only; so is
    /// JSON, in which earlier versions wrote `null` for all that was not given.
    #[test]
    fn what_is_written_reads_the_same() {
        let texts = [
            "kind = \"page\"\ngc = \"d-choices\"\ngc_choices = 3\nsuperblock_dies = 2",
            "kind = \"dftl\"\ngc = \"cost-benefit\"\nhot_cold = true",
            "kind = \"bast\"\nunit_kib = 4\nloses_order = true\nwear_levelling = \"static\"",
            "kind = \"bast\"",
            "kind = \"fast\"\nlog_superblocks = 4",
            "kind = \"block\"\nopen_blocks = 5",
        ];
        for text in texts {
            let options = read(text).unwrap();
            let written = toml::to_string(&options).unwrap();
            assert_eq!(read(&written).as_ref(), Ok(&options), "{written}");
            let table: toml::Table = toml::from_str(text).unwrap();
            let again: toml::Table = toml::from_str(&written).unwrap();
            assert!(table.iter().all(|(key, value)| again.get(key) == Some(value)), "{text}\n{written}");
        }
    }
}
