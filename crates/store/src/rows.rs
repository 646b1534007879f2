//! The lines of `runs.ndjson`, each held against its own checksum.
//!
//! How: a line is a row where it parses and its checksum, if it has one, is
//! right. A row of a version without checksums has neither its own nor its
//! record file's; a row with only one of the two is damaged. What is no row is
//! left out and told; nothing here stops at it, so that one bit costs one run.

use crate::checksum::{Seal, examine};
use crate::contents::RunRow;
use crate::damage::Damage;
use std::collections::HashMap;
use std::ops::Range;

/// The file's name in the store.
pub(crate) const FILE: &str = "runs.ndjson";

/// A row and where its line is, newline included.
pub(crate) struct RowLine {
    pub(crate) row: RunRow,
    pub(crate) bytes: Range<usize>,
}

/// `runs.ndjson` as read.
pub(crate) struct ParsedRows {
    /// The sound rows.
    pub(crate) lines: Vec<RowLine>,
    /// Where the lines end; what follows the last newline is torn.
    pub(crate) end: usize,
    /// The lines that are left out.
    pub(crate) damage: Vec<Damage>,
}

/// Parses `runs.ndjson`. A last line without its newline is not there yet: a
/// run in progress may be writing it.
pub(crate) fn parse_rows(bytes: &[u8]) -> ParsedRows {
    let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let mut parsed = ParsedRows { lines: Vec::new(), end, damage: Vec::new() };
    let (mut from, mut places) = (0, HashMap::<u32, Vec<usize>>::new());
    for (at, line) in bytes[..end].split_inclusive(|b| *b == b'\n').enumerate() {
        let here = from..from + line.len();
        from = here.end;
        match row_of(&line[..line.len() - 1]) {
            Ok(row) => {
                places.entry(row.spec.id).or_default().push(parsed.lines.len());
                parsed.lines.push(RowLine { row, bytes: here });
            }
            Err(what) => parsed.damage.push(Damage {
                file: format!("{FILE}, line {}", at + 1),
                run: claimed_run(line),
                what,
                row: true,
            }),
        }
    }
    drop_twins(bytes, &mut parsed, places.into_values().filter(|p| p.len() > 1).collect());
    parsed
}

/// The row that a line is, or why it is none.
fn row_of(line: &[u8]) -> Result<RunRow, String> {
    let row: RunRow = serde_json::from_slice(line).map_err(|e| format!("it is no row: {e}"))?;
    match examine(line) {
        Seal::Intact => Ok(row),
        Seal::Changed => Err("its checksum is another".into()),
        Seal::None if row.records.checksum.is_some() => Err("it has lost its checksum".into()),
        Seal::None => Ok(row),
    }
}

/// The run that a line without a row says it is of.
fn claimed_run(line: &[u8]) -> Option<u32> {
    let digits = line.strip_prefix(b"{\"id\":")?;
    let end = digits.iter().position(|b| !b.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// Of rows of the same run, equal ones count once, and of different ones none.
fn drop_twins(bytes: &[u8], parsed: &mut ParsedRows, twins: Vec<Vec<usize>>) {
    let mut gone = Vec::new();
    for places in twins {
        let text = |at: &usize| &bytes[parsed.lines[*at].bytes.clone()];
        let same = places.iter().all(|at| text(at) == text(&places[0]));
        let run = parsed.lines[places[0]].row.spec.id;
        let what = if same { "it is there twice, and counts once" } else { "it is there twice, and differs" };
        parsed.damage.push(Damage { file: FILE.into(), run: Some(run), what: what.into(), row: !same });
        gone.extend(places.into_iter().skip(usize::from(same)));
    }
    let mut at = 0;
    parsed.lines.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
}
