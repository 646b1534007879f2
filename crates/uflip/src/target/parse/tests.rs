use super::*;

const SIZE: Bytes = Bytes(1 << 30);

/// What a command without other options makes of a target and `--scratch`.
fn of(target: Option<&str>, scratch: Option<&str>, unnamed: Unnamed) -> anyhow::Result<Target> {
    let (target, scratch) = (target.map(str::to_string), scratch.map(PathBuf::from));
    Target::of_command(&TargetArgs { target, scratch, scratch_size: SIZE }, unnamed, &Typed::default())
}

fn named(text: &str) -> anyhow::Result<Target> {
    of(Some(text), None, Unnamed::Nothing)
}

/// Some block device of this machine, by its bare name.
fn some_device() -> Option<String> {
    let names = std::fs::read_dir("/dev").ok()?.flatten();
    let block = |entry: &std::fs::DirEntry| entry.metadata().is_ok_and(|m| m.file_type().is_block_device());
    names.filter(block).find_map(|entry| entry.file_name().into_string().ok())
}

#[test]
fn what_is_typed_is_understood_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = |name: &str| at(name).to_str().unwrap().to_string();
    std::fs::write(at("full"), "x").unwrap();
    std::fs::write(at("empty"), "").unwrap();
    std::fs::write(at("mine.toml"), uflip_sim::catalogue::text("mtron").unwrap()).unwrap();
    let parse = |text: &str| Target::parse(text, SIZE).unwrap();
    assert_eq!(parse("null:"), Target::Null { capacity: NULL_CAPACITY });
    assert_eq!(parse("null:64M"), Target::Null { capacity: Bytes(64 << 20) });
    assert_eq!(parse(&text("full")), Target::ExistingFile { path: at("full") });
    assert_eq!(parse(&text("empty")), Target::Scratch { path: at("empty"), size: SIZE });
    assert_eq!(parse(&text("none")), Target::Scratch { path: at("none"), size: SIZE });
    let Target::Simulated { model, description } = parse("sim:mtron") else { panic!("not simulated") };
    assert_eq!((model, description.name.is_empty()), (Model::Catalogue("mtron".into()), false));
    let Target::Simulated { model, .. } = parse(&format!("sim:{}", text("mine.toml"))) else {
        panic!("not simulated")
    };
    assert_eq!(model, Model::File(at("mine.toml")));
    for text in ["null:", "null:64M", "sim:mtron", &text("full")] {
        assert_eq!(parse(text).to_string(), text);
    }
    // Relative paths are the same from everywhere.
    let here = std::env::current_dir().unwrap().join("none");
    assert_eq!(parse("./none").path(), Some(here.as_path()));
    for wrong in ["null:7", "null:x", "sim:none"] {
        assert!(Target::parse(wrong, SIZE).unwrap_err().is::<crate::Usage>(), "{wrong}");
    }
}

#[test]
fn a_block_device_is_one_by_whatever_name() {
    let Some(name) = some_device() else {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: no block device is in /dev");
        return;
    };
    let (folder, device) = (tempfile::tempdir().unwrap(), Path::new("/dev").join(&name));
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&device, &link).unwrap();
    assert_eq!(Target::parse(device.to_str().unwrap(), SIZE).unwrap(), Target::BlockDevice { path: device });
    assert_eq!(Target::parse(link.to_str().unwrap(), SIZE).unwrap(), Target::BlockDevice { path: link });
    let refused = named(&name).unwrap_err();
    assert!(refused.to_string().starts_with(&format!("did you mean /dev/{name}?")), "{refused}");
}

#[test]
fn a_bare_word_names_only_what_is_there() {
    for (text, part) in [
        ("mtron", "did you mean sim:mtron?"),
        ("null", "did you mean null:?"),
        ("nothing-here", "type ./nothing-here or --scratch nothing-here"),
    ] {
        let refused = named(text).unwrap_err();
        assert!(refused.is::<crate::Usage>() && refused.to_string().contains(part), "{text}: {refused}");
    }
    // Tests run in the crate's folder.
    let there = named("Cargo.toml").unwrap();
    assert!(matches!(there, Target::ExistingFile { .. }), "{there:?}");
    let new = named("./nothing-here").unwrap();
    assert!(matches!(new, Target::Scratch { size: SIZE, .. }), "{new:?}");
}

#[test]
fn a_scratch_file_is_named_by_its_option() {
    let scratch = |path: &str| of(None, Some(path), Unnamed::Nothing);
    assert!(matches!(scratch("nothing-here").unwrap(), Target::Scratch { size: SIZE, .. }));
    let refused = scratch("Cargo.toml").unwrap_err();
    assert!(refused.to_string().contains("no scratch file of uflip's"), "{refused}");
    let both = of(Some("null:"), Some("nothing-here"), Unnamed::Nothing).unwrap_err();
    assert!(both.to_string().contains("one of the two"), "{both}");
    let usual = of(None, None, Unnamed::ScratchFile).unwrap();
    assert!(usual.path().unwrap().ends_with("uflip-scratch.bin"), "{usual:?}");
    assert_eq!(of(None, None, Unnamed::Device("sim:mtron")).unwrap().to_string(), "sim:mtron");
    let none = of(None, None, Unnamed::Nothing).unwrap_err();
    assert!(none.is::<crate::Usage>() && none.to_string().contains("name a target"), "{none}");
}

/// The options of a command line, as they were typed.
fn typed(words: &[&str]) -> (TargetArgs, Typed) {
    let words: Vec<std::ffi::OsString> = words.iter().map(Into::into).collect();
    match crate::typed::parse(&words).unwrap().command {
        crate::args::Command::Pattern(args) => (args.target, args.typed),
        _ => panic!("not a pattern"),
    }
}

#[test]
fn what_does_nothing_on_a_target_is_refused_where_it_was_typed() {
    let of = |target: &str, more: &[&str]| {
        let (target, typed) = typed(&[&["uflip", "pattern", target, "--base", "SR"], more].concat());
        Target::of_command(&target, Unnamed::Nothing, &typed)
    };
    let options: [&[&str]; 6] = [
        &["--engine", "sync"],
        &["--engine", "io_uring", "--queue-depth", "4"],
        &["--buffering", "direct"],
        &["--data", "zeros"],
        &["--discard", "plain"],
        &["--scratch-size", "1G"],
    ];
    for target in ["null:", "sim:mtron"] {
        assert!(of(target, &[]).is_ok());
        for more in options {
            let refused = of(target, more).unwrap_err().to_string();
            assert!(refused.contains(more[0]) && refused.contains("leave it away"), "{more:?}: {refused}");
        }
    }
    for more in options {
        assert!(of("./nothing-here", more).is_ok(), "{more:?}");
    }
    let there = of("Cargo.toml", &["--scratch-size", "1G"]).unwrap_err().to_string();
    assert!(there.contains("is there as it is"), "{there}");
}
