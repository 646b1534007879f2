//! `uflip compare`: profiles side by side, and a gate for changes.

use crate::args::MethodArg;
use crate::args::compare::CompareArgs;
use crate::command::plan::Wanted;
use crate::command::run::measure_simulated;
use crate::command::{print_json, print_painted};
use crate::private::PrivateFolder;
use crate::target::{Target, simulated_by};
use crate::usage;
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use uflip_analysis::compare::rule::{self, Rule};
use uflip_analysis::compare::{Comparison, Subject, compare as compare_subjects, require_whole};
use uflip_device::Bytes;
use uflip_measure::Preset;
use uflip_report::compare::{is_ours, render_page, render_text};
use uflip_report::terminal::Style;
use uflip_store::complete::go_on;
use uflip_store::{Output, Store, StoreContents, output};

/// Runs the command. Exit code 1 where a rule fails, 2 where one makes no sense.
///
/// # Errors
/// Where a folder holds no results, or a rule is broken.
pub fn compare(args: CompareArgs) -> anyhow::Result<()> {
    let rules: Vec<Rule> =
        args.fail_if.iter().map(|text| text.parse().map_err(usage)).collect::<Result<_, _>>()?;
    let drawn = args.subjects.len() > 1 && !args.json;
    let page = match args.html {
        _ if args.no_html => None,
        None if drawn => Some(unasked_page()?),
        named => named,
    };
    // Before anything is measured.
    if let Some(path) = &page {
        output::check(path).map_err(usage)?;
    }
    let subjects = subjects(&args.subjects, args.seed)?;
    let mut made = compare_subjects(&subjects, &rules);
    for rule in &rules {
        rule::check(rule, &made).map_err(usage)?;
    }
    if !rules.is_empty() && !args.allow_incomplete {
        require_whole(&mut made);
    }
    if let Some(path) = page {
        let mut out = Output::create(&path)?;
        out.write_all(render_page(&made).as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        out.finish()?;
        crate::say!("the comparison is in {}", path.display());
    }
    // Whoever closes standard output does not change what came out.
    let told = tell(&made, args.json);
    let failed: Vec<&str> = made.rules.iter().filter(|r| r.failed).map(|r| r.rule.as_str()).collect();
    if failed.is_empty() { told } else { bail!("failed: {}", failed.join("; ")) }
}

/// Prints it.
fn tell(made: &Comparison, json: bool) -> anyhow::Result<()> {
    if json {
        print_json(made)
    } else {
        let out = std::io::stdout();
        let color = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let width = if out.is_terminal() { usize::from(console::Term::stdout().size().1) } else { 80 };
        let text = render_text(made, Style { width: width.clamp(80, 140), color, ascii: false });
        print_painted(&text, color)
    }
}

/// The page where no other file is named; what is no comparison of ours is not replaced unasked.
fn unasked_page() -> anyhow::Result<PathBuf> {
    let path = PathBuf::from("compare.html");
    let is_other = match std::fs::read(&path) {
        Ok(there) => !there.is_empty() && !is_ours(&there),
        // Whether it can be written at all is seen where every output is.
        Err(_) => false,
    };
    if is_other {
        return Err(usage(
            "compare.html is there and is no comparison of uflip; type --html FILE with another name, or --no-html",
        ));
    }
    Ok(path)
}

/// Folders read, simulated devices measured, in the order they were named.
/// What is measured here takes IOSize and micro-benchmarks from the folders.
///
/// # Errors
/// Where one of them is neither.
pub fn subjects(names: &[String], seed: u64) -> anyhow::Result<Vec<Subject>> {
    let mut read: Vec<Option<StoreContents>> = Vec::new();
    for name in names {
        read.push(if simulated_by(name).is_some() { None } else { Some(Store::open(Path::new(name))?) });
    }
    let like = like(read.iter().flatten())?;
    let mut subjects = Vec::new();
    for (name, contents) in names.iter().zip(read) {
        let subject = match contents {
            Some(contents) => Subject::new(name, contents)?,
            None => measured(name, seed, &like)?,
        };
        if subject.contents.runs.is_empty() {
            bail!("{name} holds no finished run; go on with it: {}", go_on(&subject.contents));
        }
        subjects.push(subject);
    }
    Ok(subjects)
}

/// What makes a measurement comparable with these.
fn like<'a>(folders: impl Iterator<Item = &'a StoreContents>) -> anyhow::Result<Wanted> {
    let (mut micros, mut io_size, mut auto) = (BTreeSet::new(), None, true);
    for contents in folders {
        auto &= contents.manifest.options.asked.auto().is_some();
        micros.extend(contents.runs.iter().filter_map(|r| r.spec.point()).map(|p| p.micro.name()));
        io_size = io_size.or_else(|| contents.plan.as_ref().map(|plan| plan.io_size.0));
    }
    let wanted = Wanted::by(if auto { MethodArg::Auto } else { MethodArg::Fixed });
    let only = micros.iter().map(|name| name.parse().map_err(usage)).collect::<anyhow::Result<_>>()?;
    Ok(Wanted { only, io_size: io_size.map_or(wanted.io_size, Bytes), ..wanted })
}

/// Measures `sim:NAME` in virtual time into a folder that is removed again.
fn measured(name: &str, seed: u64, like: &Wanted) -> anyhow::Result<Subject> {
    let target = Target::parse(name, Bytes(0))?;
    crate::say!("measuring {name} in virtual time");
    let folder = PrivateFolder::new("uflip-compare")?;
    let wanted = Wanted { preset: Some(Preset::Standard), ..like.clone() };
    measure_simulated(target, seed, folder.path(), wanted)?;
    Ok(Subject::new(name, Store::open(folder.path())?)?)
}
