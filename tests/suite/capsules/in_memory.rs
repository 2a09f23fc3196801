//! Capsules that are put together in memory, as the page does.

use std::collections::BTreeMap;
use std::fs;

use burn_runner::data::origin;
use burn_runner::event::Event;
use burn_runner::record::capsule::{DataRoot, Needs, pack_in_memory};
use burn_runner::record::{RunFolder, files_of};

use super::super::support::{root, run};
use super::{contents, folder_with, spec, trained};

/// What the training itself writes, and nothing that follows from it.
fn is_given(name: &str) -> bool {
    ["trace/", "model/"]
        .iter()
        .any(|place| name.starts_with(place))
        || ["transforms.json", "evaluation.json", "weights.json"].contains(&name)
}

#[test]
fn a_capsule_made_in_memory_has_the_files_of_the_folder_and_is_reproduced() {
    let data = "type = \"csv\"\npath = \"rows.csv\"\ntarget = \"species\"";
    let folder = folder_with(&spec(data));
    let rows = folder.path().join("rows.csv");
    fs::copy(root().join("experiments/data/iris.csv"), &rows).unwrap();
    trained(folder.path());
    let place = RunFolder(folder.path().join("results/spec/runs/base-s1"));
    let plan = place.read_plan().unwrap().unwrap();
    let environment = place.read_environment().unwrap().unwrap();
    let there = contents(&place.0);
    let given: BTreeMap<_, _> = there
        .clone()
        .into_iter()
        .filter(|(name, _)| is_given(name))
        .collect();
    let mut events = place.read_events().unwrap();
    events.retain(|(_, event)| !matches!(event, Event::FilesRecorded { .. }));
    let (record, files) = files_of(&plan, &environment, events, given).unwrap();
    // The time of the event with the digests differs, and with it the sums of the log.
    for (name, bytes) in files.iter().filter(|(name, _)| *name != "events.jsonl") {
        assert_eq!(bytes, &there[name], "{name}");
    }

    let roots = origin::measure(&plan.data, &|_, _| {}).unwrap();
    let roots = roots.iter().map(DataRoot::of).collect();
    let packed = pack_in_memory(&plan, &record, files, roots, &|path| fs::read(path)).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("page.capsule.tar.zst"), packed).unwrap();
    fs::remove_file(rows).unwrap();
    let capsule = burn_runner::record::capsule::unpack(
        &elsewhere.path().join("page.capsule.tar.zst"),
        &elsewhere.path().join("deep"),
        None,
    );
    let capsule = capsule.unwrap();
    assert_eq!(capsule.manifest.data.needs, Needs::Packed);
    assert_eq!(capsule.manifest.data.roots[0].original, "rows.csv");
    let (code, stdout, stderr) = run(elsewhere.path(), &["reproduce", "page.capsule.tar.zst"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(
        stdout.contains("bitwise") || stderr.contains("bitwise"),
        "{stdout}{stderr}"
    );
}
