//! Random descriptions of flash devices of 1 GiB and more: every kind of flash
//! translation layer with options, buffers and chips as they may come together.
//!
//! Method: texts of device files are drawn until one can be built whose superblocks are
//! of at most 8 MiB and an eightieth of the device. Units are in the names.

use super::draw::{chance, log_uniform, one_of};
use crate::Description;
use uflip_device::rng::Rng;

/// As it is typed after `kind =`, with the option of a one-bit region apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlashKind {
    Page,
    Dftl,
    Bast,
    Fast,
    Block,
    Slc,
}

/// A description of this kind that can be built, and its text.
pub(super) fn draw(kind: FlashKind, rng: &mut Rng) -> (Description, String) {
    loop {
        let text = text(kind, rng);
        let Ok(description) = crate::check(&text) else { continue };
        let Some(g) = &description.geometry else { continue };
        let dies = g.channels * g.chips_per_channel;
        let dies = description.ftl.as_ref().and_then(|f| f.superblock_dies).unwrap_or(dies);
        let superblock = u64::from(dies * g.planes_per_die * g.pages_per_block) * g.page_bytes;
        if superblock <= (8 << 20).min((description.capacity_mib << 20) / 80) {
            return (description, text);
        }
    }
}

fn text(kind: FlashKind, rng: &mut Rng) -> String {
    let mut text = format!(
        "name = \"drawn\"\ncapacity_mib = {}\n[link]\nread_latency_us = {:.0}\nwrite_latency_us = {:.0}\n\
         read_mb_s = {:.0}\nwrite_mb_s = {:.0}\nseek_read_us = {:.0}\nread_streams = {}\nread_ahead_kib = {}\n",
        one_of(rng, &[1024, 2048]),
        log_uniform(rng, 20.0, 400.0),
        log_uniform(rng, 20.0, 400.0),
        log_uniform(rng, 20.0, 400.0),
        log_uniform(rng, 15.0, 300.0),
        log_uniform(rng, 1.0, 400.0),
        one_of(rng, &[1, 4]),
        one_of(rng, &[0, 32, 128]),
    );
    let chips: u64 = one_of(rng, &[1, 2, 4, 8]);
    let channels: u64 = one_of(rng, &[1, 2, 4]);
    text += &format!(
        "[geometry]\nchannels = {channels}\nchips_per_channel = {chips}\nplanes_per_die = {}\n\
         pages_per_block = {}\npage_bytes = {}\nspare_blocks = {}\n",
        one_of(rng, &[1, 2]),
        one_of(rng, &[64, 128]),
        one_of(rng, &[2048, 4096, 8192]),
        one_of(rng, &[0, 4, 16]),
    );
    let erase_us = log_uniform(rng, 1000.0, 4000.0);
    text += &format!(
        "[timing]\nread_us = {:.0}\nprogram_us = {:.0}\nerase_us = {erase_us:.0}\nbus_mb_s = {:.0}\n",
        log_uniform(rng, 20.0, 80.0),
        log_uniform(rng, 150.0, 1200.0),
        log_uniform(rng, 30.0, 200.0),
    );
    if chance(rng, 0.3) {
        text += &format!("log_switch_us = {:.0}\n", log_uniform(rng, 100.0, 3000.0));
    }
    text += &ftl(kind, rng);
    let dies = channels * chips;
    let divisors: Vec<u64> = [1, 2, 4, 8, 16, 32].into_iter().filter(|d| dies.is_multiple_of(*d)).collect();
    text += &format!("superblock_dies = {}\n", one_of(rng, &divisors));
    if chance(rng, 0.5) {
        text += &buffer(rng);
    }
    if kind == FlashKind::Slc {
        let (mib, us, rate) =
            (log_uniform(rng, 16.0, 256.0), log_uniform(rng, 60.0, 200.0), log_uniform(rng, 4.0, 60.0));
        text += &format!("[slc]\ncache_mib = {mib:.0}\nprogram_us = {us:.0}\nfold_mb_s = {rate:.0}\n");
    }
    text
}

fn ftl(kind: FlashKind, rng: &mut Rng) -> String {
    let pages = |rng: &mut Rng| {
        format!(
            "over_provisioning = {:.2}\ngc = \"{}\"\nhot_cold = {}\nidle_free_superblocks = {}\n",
            log_uniform(rng, 0.07, 0.4),
            one_of(rng, &["greedy", "cost-benefit", "d-choices"]),
            chance(rng, 0.5),
            one_of(rng, &[0, 0, 8, 32]),
        )
    };
    match kind {
        FlashKind::Page | FlashKind::Slc => format!("[ftl]\nkind = \"page\"\n{}", pages(rng)),
        FlashKind::Dftl => {
            let kib = one_of(rng, &[32, 128, 512]);
            format!("[ftl]\nkind = \"dftl\"\nmap_cache_kib = {kib}\n{}", pages(rng))
        }
        FlashKind::Bast => {
            let logs = one_of(rng, &[2, 4, 8, 16, 32]);
            let mut text = format!(
                "[ftl]\nkind = \"bast\"\nlog_blocks = {logs}\nmerge_batch = {}\nrestart_merges = {}\n\
                 page_wise_log_copy = {}\n",
                one_of(rng, &[1, 1, 2]),
                chance(rng, 0.3),
                chance(rng, 0.3),
            );
            if chance(rng, 0.4) {
                text += &format!("unit_kib = {}\n", one_of(rng, &[4, 8, 16]));
            }
            text
        }
        FlashKind::Fast => format!(
            "[ftl]\nkind = \"fast\"\nlog_kib = {}\nsequential_logs = {}\n",
            one_of(rng, &[2048, 8192, 16384]),
            one_of(rng, &[1, 2, 4])
        ),
        FlashKind::Block => {
            format!("[ftl]\nkind = \"block\"\nopen_blocks = {}\n", one_of(rng, &[1, 3, 5, 9]))
        }
    }
}

fn buffer(rng: &mut Rng) -> String {
    let (line, lines) = (one_of(rng, &[4, 16, 32]), one_of(rng, &[4, 16, 64]));
    format!(
        "[buffer]\nkib = {}\nline_kib = {line}\ndestage = \"{}\"\nbatch_lines = {}\n",
        line * lines,
        one_of(rng, &["immediate", "lazy", "async", "run"]),
        one_of(rng, &[1, 4]),
    )
}
