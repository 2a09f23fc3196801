//! The board of `runner run` on a terminal, its keys, and `runner watch`.

use std::fs;
use std::process::Stdio;

use super::edit::Edit;
use super::support::{IRIS, SLOW, completed, folder_with, goes_on, run, runner, summary, texts};
use super::terminal::Terminal;

/// Two runs of some seconds each.
fn slow() -> String {
    let two = format!("[experiment]\nseeds = [1, 2]\n{SLOW}");
    two.edit("dropout = 0.2\n", "")
}

/// `runner run` on a terminal of 100 columns and 30 lines, one run at a time.
fn started(spec: &str, arguments: &[&str]) -> (tempfile::TempDir, Terminal) {
    let folder = folder_with(spec);
    let mut command = runner(folder.path());
    command
        .args(["run", "spec.toml", "--jobs", "1"])
        .args(arguments);
    (folder, Terminal::start(command, 100, 30))
}

/// Whether the board shows a run with some finished epochs.
fn is_under_way(shown: &str, run: &str) -> bool {
    let mut lines = shown.lines();
    lines.any(|line| line.contains(run) && line.contains(" %") && line.contains('▁'))
}

#[test]
fn a_key_stops_one_run_which_can_go_on() {
    let (folder, mut terminal) = started(&slow(), &[]);
    terminal.until("the first run", |shown| is_under_way(shown, "> base-s1"));
    assert!(!terminal.is_as_before());
    terminal.press("s");
    terminal.until_shown("base-s1: stopping after saving a checkpoint");
    terminal.until("the second run", |shown| is_under_way(shown, "base-s2"));
    assert_eq!(summary(folder.path(), "base-s1")["outcome"], "interrupted");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(130), "{}", ended.shown);
    assert!(ended.is_as_before);
    assert!(
        ended.shown.contains("1 of 2 runs completed"),
        "{}",
        ended.shown
    );
    // The board is gone, and earlier messages remain.
    assert!(!ended.shown.contains("slots"), "{}", ended.shown);
    assert!(
        ended
            .shown
            .contains("[1/2] base-s1  interrupted, can be resumed")
    );
    assert!(goes_on(folder.path()).contains("base-s1"));
}

#[test]
fn a_run_that_hangs_is_killed_by_the_second_press() {
    let (folder, mut terminal) = started(&slow(), &["--inject-fault", "*-s1@training:200=hang"]);
    terminal.until("the first run", |shown| is_under_way(shown, "> base-s1"));
    terminal.press("s");
    terminal.until_shown("press s again to stop at once");
    terminal.press("s");
    terminal.until_shown("[1/2] base-s1  interrupted");
    assert_eq!(terminal.end().code, Some(130));
    assert_eq!(summary(folder.path(), "base-s2")["outcome"], "completed");
}

#[test]
fn a_key_lets_no_other_run_start() {
    let (folder, mut terminal) = started(&slow(), &[]);
    terminal.until("the first run", |shown| is_under_way(shown, "> base-s1"));
    terminal.press("a");
    terminal.until_shown("1 not started: base-s2");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(130), "{}", ended.shown);
    assert_eq!(summary(folder.path(), "base-s1")["outcome"], "completed");
    let begun = folder.path().join("results/spec/runs/base-s2/events.jsonl");
    assert!(!begun.exists());
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    for (key, code) in [("q", Some(130)), ("\u{3}", Some(130)), ("\u{1c}", None)] {
        let (_folder, mut terminal) = started(&slow(), &[]);
        terminal.until("the first run", |shown| is_under_way(shown, "> base-s1"));
        assert!(!terminal.is_as_before());
        terminal.press(key);
        let ended = terminal.end();
        assert_eq!(
            (ended.code, ended.is_as_before),
            (code, true),
            "{key:?}: {}",
            ended.shown
        );
        if code.is_some() {
            let said = "stopping: active runs save a checkpoint; press Ctrl-C again";
            assert!(ended.shown.contains(said), "{}", ended.shown);
        }
    }
}

#[test]
fn a_board_follows_the_size_of_the_terminal() {
    let (_folder, mut terminal) = started(&slow(), &[]);
    terminal.until("the first run", |shown| is_under_way(shown, "> base-s1"));
    terminal.press("?");
    terminal.until_shown("a: finish active runs and start no more");
    terminal.press("?");
    // Too narrow for a curve, and too low for everything.
    terminal.resize(34, 6);
    terminal.until("a small board", |shown| {
        let mut lines = shown.lines();
        lines
            .any(|line| line.starts_with("> base-s1") && line.contains(" %") && !line.contains('▁'))
    });
    terminal.resize(140, 40);
    terminal.until("a wide board", |shown| {
        shown.contains("━") && shown.contains("steps/s")
    });
    terminal.press("q");
    assert_eq!(terminal.end().code, Some(130));
}

#[test]
fn what_is_said_above_the_board_breaks_at_spaces() {
    let folder = folder_with(&format!("[experiment]\nseeds = [1, 2]\n{IRIS}"));
    let mut command = runner(folder.path());
    command.args(["run", "spec.toml", "--jobs", "1"]);
    let ended = Terminal::start(command, 40, 60).end();
    assert_eq!(ended.code, Some(0), "{}", ended.shown);
    // A line that the terminal has broken is one line of what it shows.
    let lines: Vec<&str> = ended.shown.lines().collect();
    for line in &lines {
        assert!(line.chars().count() <= 40, "{line}");
    }
    let at = lines.iter().position(|line| line.starts_with("[1/2] "));
    let said = lines[at.expect("a line about the first run")..][..3].join(" ");
    let words: Vec<&str> = said.split_whitespace().collect();
    let said = words.join(" ");
    assert!(said.contains("completed valid/accuracy 0."), "{said}");
    assert!(said.contains(" in epoch 3"), "{said}");
}

#[test]
fn a_terminal_without_a_cursor_gets_lines() {
    let folder = folder_with(IRIS);
    let mut command = runner(folder.path());
    command.args(["run", "spec.toml"]).env("TERM", "dumb");
    let ended = Terminal::start(command, 100, 30).end();
    assert_eq!(ended.code, Some(0), "{}", ended.shown);
    assert!(!ended.sent.contains(&0x1b), "{}", ended.shown);
    assert!(
        ended.shown.contains("[1/1] base-s1  completed"),
        "{}",
        ended.shown
    );
    // There is also a board without colors.
    let mut command = runner(folder.path());
    command
        .args(["run", "spec.toml", "--results", "again"])
        .env("NO_COLOR", "1");
    let ended = Terminal::start(command, 100, 30).end();
    let sent = String::from_utf8_lossy(&ended.sent);
    assert!(
        sent.contains("0 of 1 runs ended") && sent.contains("\u{1b}[J"),
        "{sent}"
    );
    assert!(
        !sent.contains("\u{1b}[2m") && !sent.contains("\u{1b}[1m"),
        "{sent}"
    );
}

#[test]
fn what_is_there_is_shown_once() {
    let spec = format!("[experiment]\nseeds = [1, 2]\n{IRIS}");
    let folder = folder_with(&spec);
    run(
        folder.path(),
        &["run", "spec.toml", "--inject-fault", "*-s2@2"],
    );
    for place in ["results", "results/spec"] {
        let (code, stdout, stderr) = run(folder.path(), &["watch", place, "--once"]);
        assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
        let lines: Vec<&str> = stdout.lines().collect();
        assert_eq!(lines[0], "spec: 2 of 2 runs ended, 1 failed");
        assert!(lines[1].starts_with("  base-s1  completed  epoch 3/3  valid/accuracy 0."));
        assert!(lines[2].starts_with("  base-s2  failed (panic)"));
    }
    let (code, _, stderr) = run(folder.path(), &["watch", "nowhere"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("`nowhere` contains no experiments"),
        "{stderr}"
    );
    // A run without an active runner is not awaited.
    let events = folder.path().join("results/spec/runs/base-s2/events.jsonl");
    let text = fs::read_to_string(&events).unwrap();
    let kept: Vec<_> = text
        .lines()
        .filter(|line| !line.contains("run_finished"))
        .collect();
    fs::write(&events, kept.join("\n") + "\n").unwrap();
    burn_runner::record::reseal(&events).unwrap();
    let (code, stdout, _) = run(folder.path(), &["watch"]);
    assert_eq!(code, 0);
    assert!(
        stdout.contains("base-s2  incomplete, no runner is active")
            && stdout.contains("1 of 2 runs ended, 0 failed; no runner is active; resume with: runner run spec.toml\n"),
        "{stdout}"
    );
    // Runs that have not started have no forecast.
    let run_folder = folder.path().join("results/spec/runs/base-s2");
    fs::remove_dir_all(&run_folder).unwrap();
    let (code, stdout, _) = run(folder.path(), &["watch", "--once"]);
    assert_eq!(code, 0);
    assert!(
        stdout.contains("base-s2  not started") && !stdout.contains(" left"),
        "{stdout}"
    );
}

#[test]
fn runs_are_watched_from_another_terminal() {
    let (folder, mut terminal) = started(&slow(), &[]);
    terminal.until("the first run", |shown| is_under_way(shown, "> base-s1"));
    let watch = || {
        let mut command = runner(folder.path());
        command.arg("watch");
        command
    };
    let lines = watch()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let lines = lines.unwrap();
    let mut board = Terminal::start(watch(), 100, 30);
    board.until("the first run", |shown| is_under_way(shown, "base-s1"));
    // Keys that stop runs have no effect there.
    board.press("sa");
    let mut left = Terminal::start(watch(), 100, 30);
    left.until_shown("active");
    left.press("q");
    assert_eq!(left.end().code, Some(0));
    assert_eq!(terminal.end().code, Some(0));
    let ended = board.end();
    assert_eq!((ended.code, ended.is_as_before), (Some(0), true));
    let shown = ended.shown;
    assert!(
        shown.contains("spec  2 of 2 runs ended") && shown.contains("[2/2] base-s2  completed"),
        "{shown}"
    );
    let (code, stdout, stderr) = texts(&lines.wait_with_output().unwrap());
    assert_eq!(code, 0);
    assert!(stdout.starts_with("spec: "), "{stdout}");
    assert!(stderr.contains("[2/2] base-s2  completed"), "{stderr}");
}

#[test]
fn nothing_is_left_of_progress_when_a_run_has_ended() {
    let folder = completed(IRIS, &[]);
    assert!(
        !folder
            .path()
            .join("results/spec/runs/base-s1/progress.json")
            .exists()
    );
}
