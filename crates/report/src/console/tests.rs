//! Boards as they are drawn, and what keys do to them.

use super::board::{Board, Row, State};
use super::draw::{View, draw, text};
use super::keys::{Command, Keys};
use super::pace::Pace;
use super::terminal::Key;
use super::words;
use runner_core::event::{FailureClass, Outcome};
use runner_core::spec::backend::DeviceName;

fn row(id: &str, state: State) -> Row {
    Row {
        id: id.to_owned(),
        state,
        device: DeviceName::try_from("flex".to_owned()).unwrap(),
        epoch: 0,
        epochs: 10,
        step: 0,
        num_steps: 1000,
        steps_per_sec: None,
        curve: Vec::new(),
        held_bytes: None,
        steps_per_epoch: 100,
        may_stop_early: false,
        epoch_secs: 0.0,
    }
}

/// Two active runs, of which one is measured, one that is retried, two that wait, and three that have ended or were interrupted.
fn board() -> Board {
    let failed = Outcome::failed(
        FailureClass::NotFinite,
        "the loss is infinite since step 31; lower\nthe learning rate",
    );
    let mut rows = vec![
        row("optimizer=sgd,learning_rate=0.1-s1", State::Ended(failed)),
        row(
            "optimizer=sgd,learning_rate=0.1-s2",
            State::Ended(Outcome::Completed),
        ),
        row(
            "optimizer=sgd,learning_rate=0.01-s1",
            State::Ended(Outcome::Interrupted),
        ),
        row("optimizer=adam,learning_rate=0.1-s1", State::Running),
        row("optimizer=adam,learning_rate=0.1-s2", State::Running),
        row(
            "optimizer=adam,learning_rate=0.01-s1",
            State::Again("retry 1 after panic".into()),
        ),
        row("optimizer=adam,learning_rate=0.01-s2", State::Waiting),
        row("optimizer=adam,learning_rate=0.001-s1", State::Waiting),
    ];
    let mut pace = Pace::default();
    for secs in [19.0, 21.0, 20.0] {
        pace.epoch(3, rows[3].device, secs, 100);
    }
    pace.epoch(1, rows[1].device, 22.0, 100);
    rows[3].curve = vec![0.41, 0.73, 0.86];
    rows[3].step = 351;
    rows[3].epoch = 4;
    rows[3].steps_per_sec = Some(4.98);
    rows[3].held_bytes = Some(210 << 20);
    rows[4].epoch = 1;
    Board {
        experiment: "mnist_sweep".into(),
        objective: "valid/accuracy".into(),
        rows,
        slots: Some(3),
        starts_no_more: false,
        abandoned: None,
        pace,
        names: Default::default(),
    }
}

fn drawn(boards: &[Board], width: usize, height: usize) -> String {
    let mut keys = Keys::new(true);
    keys.choose(boards);
    let view = View {
        width,
        height,
        chosen: keys.chosen,
        foot: keys.foot(),
        memory: Some((3 << 30, 15 << 30)),
    };
    let lines = draw(boards, &view);
    assert!(lines.len() <= height, "{lines:?}");
    let lines: Vec<String> = lines.iter().map(text).collect();
    for line in &lines {
        assert!(super::line::width(line) <= width, "{line}");
    }
    lines.join("\n")
}

#[test]
fn a_board_is_drawn_for_the_width_that_there_is() {
    insta::assert_snapshot!(drawn(&[board()], 140, 24), @r#"
    mnist_sweep  2 of 8 runs ended  1 failed  1 interrupted  3 of 3 slots  about 7 min left (6 to 8 min)
      run                                   epoch              done  valid/accuracy            steps/s      memory
    > optimizer=adam,learning_rate=0.1-s1    4/10  ━━━╌╌╌╌╌╌╌  35 %  0.8600    ▁▆█               4.980   210.0 MiB
      optimizer=adam,learning_rate=0.1-s2    1/10  ╌╌╌╌╌╌╌╌╌╌   0 %
      optimizer=adam,learning_rate=0.01-s1   0/10  ╌╌╌╌╌╌╌╌╌╌   0 %  retry 1 after panic
    2 waiting: optimizer=adam,learning_rate=0.01-s2, optimizer=adam,learning_rate=0.001-s1
    failed  optimizer=sgd,learning_rate=0.1-s1  not_finite: the loss is infinite since step 31; lower the learning rate
    memory  210.0 MiB used on flex  2 not measured yet  3.0 GiB of 15.0 GiB free on the host
    up/down select  s stop it  a start no more  q quit  ? help
    "#);
    insta::assert_snapshot!(drawn(&[board()], 80, 24), @r#"
    mnist_sweep  2 of 8 runs ended  1 failed  1 interrupted  3 of 3 slots
    about 7 min left (6 to 8 min)
      run                 epoch  done  valid/accuracy            steps/s      memory
    > adam, 0.1-s1         4/10  35 %  0.8600    ▁▆█               4.980   210.0 MiB
      adam, 0.1-s2         1/10   0 %
      adam, 0.01-s1        0/10   0 %  retry 1 after panic
    2 waiting: optimizer=adam,learning_rate=0.01-s2, …
    failed  sgd, 0.1-s1  not_finite: the loss is infinite since step 31; lower the …
    memory  210.0 MiB used on flex  2 not measured yet
    3.0 GiB of 15.0 GiB free on the host
    up/down select  s stop it  a start no more  q quit  ? help
    "#);
    insta::assert_snapshot!(drawn(&[board()], 40, 24), @r#"
    mnist_sweep  2 of 8 runs ended  1 failed
    1 interrupted  3 of 3 slots
    about 7 min left (6 to 8 min)
      run             epoch  done  accuracy
    > adam, 0.1-s1     4/10  35 %  0.8600
      adam, 0.1-s2     1/10   0 %
      adam, 0.01-s1    0/10   0 %  retry 1 …
    2 waiting
    failed  sgd, 0.1-s1  not_finite: the …
    memory  210.0 MiB used on flex
    2 not measured yet
    3.0 GiB of 15.0 GiB free on the host
    up/down select  s stop it
    a start no more  q quit  ? help
    "#);
}

#[test]
fn what_is_left_out_is_counted() {
    let mut many = board();
    for row in &mut many.rows {
        row.state = State::Running;
    }
    insta::assert_snapshot!(drawn(&[many], 60, 8), @r#"
    mnist_sweep  0 of 8 runs ended  8 of 3 slots
    about 11 min left (9 to 12 min)
      run                    epoch  done  valid/accuracy
    > sgd, 0.1-s1             0/10   0 %
      sgd, 0.1-s2             0/10   0 %
      sgd, 0.01-s1            0/10   0 %
      5 more active
    up/down select  s stop it  a start no more  q quit  ? help
    "#);
    for width in 0..60 {
        for height in 0..12 {
            drawn(&[board(), board()], width, height);
        }
    }
}

#[test]
fn boards_that_are_over_are_a_line() {
    let mut over = board();
    for row in &mut over.rows {
        row.state = State::Ended(Outcome::Completed);
    }
    over.slots = None;
    insta::assert_snapshot!(drawn(&[over], 80, 24), @r#"
    mnist_sweep  8 of 8 runs ended
    up/down select  s stop it  a start no more  q quit  ? help
    "#);
    let mut incomplete = board();
    incomplete.slots = None;
    for row in &mut incomplete.rows[3..] {
        row.state = State::Incomplete;
    }
    insta::assert_snapshot!(drawn(&[incomplete.clone()], 80, 24), @r#"
    mnist_sweep  2 of 8 runs ended  1 failed  1 interrupted  5 incomplete
    failed  sgd, 0.1-s1  not_finite: the loss is infinite since step 31; lower the …
    up/down select  s stop it  a start no more  q quit  ? help
    "#);
    insta::assert_snapshot!(words::board(&incomplete), @r#"
    mnist_sweep: 2 of 8 runs ended, 1 failed, 1 interrupted
      optimizer=sgd,learning_rate=0.1-s1  failed (not_finite)
      optimizer=sgd,learning_rate=0.1-s2  completed
      optimizer=sgd,learning_rate=0.01-s1  interrupted
      optimizer=adam,learning_rate=0.1-s1  incomplete, no runner is active  epoch 4/10  valid/accuracy 0.8600 last
      optimizer=adam,learning_rate=0.1-s2  incomplete, no runner is active  epoch 1/10
      optimizer=adam,learning_rate=0.01-s1  incomplete, no runner is active
      optimizer=adam,learning_rate=0.01-s2  incomplete, no runner is active
      optimizer=adam,learning_rate=0.001-s1  incomplete, no runner is active
    "#);
}

#[test]
fn keys_choose_and_stop_runs() {
    let mut boards = [board()];
    let mut keys = Keys::new(true);
    let stop =
        |key: char, keys: &mut Keys, boards: &mut [Board; 1]| keys.press(Key::Char(key), boards);
    assert_eq!(stop('s', &mut keys, &mut boards), Some(Command::Stop(0, 3)));
    assert_eq!(boards[0].rows[3].state, State::Stopping);
    for key in [Key::Down, Key::Char('j'), Key::Down, Key::Down] {
        assert_eq!(keys.press(key, &mut boards), None);
    }
    assert_eq!(keys.chosen, Some((0, 5)));
    keys.press(Key::Up, &mut boards);
    assert_eq!(keys.chosen, Some((0, 4)));
    // It ends, and none is selected until the user selects one.
    boards[0].rows[4].state = State::Ended(Outcome::Completed);
    assert_eq!(stop('s', &mut keys, &mut boards), None);
    assert_eq!(keys.press(Key::Down, &mut boards), None);
    assert_eq!(stop('s', &mut keys, &mut boards), Some(Command::Stop(0, 5)));
    for row in &mut boards[0].rows {
        row.state = State::Ended(Outcome::Completed);
    }
    assert_eq!(stop('s', &mut keys, &mut boards), None);
    assert_eq!(keys.chosen, None);
    assert_eq!(
        stop('a', &mut keys, &mut boards),
        Some(Command::StartNoMore)
    );
    assert!(boards[0].starts_no_more);
    assert_eq!(stop('q', &mut keys, &mut boards), Some(Command::Quit));
    // A watcher changes nothing.
    let mut keys = Keys::new(false);
    let mut boards = [board()];
    assert_eq!(stop('s', &mut keys, &mut boards), None);
    assert_eq!(stop('a', &mut keys, &mut boards), None);
    assert_eq!(stop('q', &mut keys, &mut boards), Some(Command::Quit));
    assert!(!boards[0].starts_no_more);
}

#[test]
fn what_keys_do_is_broken_and_not_cut() {
    let mut boards = [board()];
    let mut keys = Keys::new(true);
    keys.press(Key::Char('?'), &mut boards);
    for width in [79, 40] {
        let view = View {
            width,
            height: 40,
            chosen: None,
            foot: keys.foot(),
            memory: None,
        };
        let lines: Vec<String> = draw(&boards, &view).iter().map(text).collect();
        let foot = lines.iter().position(|line| line.starts_with("up, down"));
        let foot = &lines[foot.expect("a foot")..];
        assert!(foot.iter().all(|line| !line.contains('…')), "{foot:?}");
        let words = foot.join(" ");
        for part in ["twice: kill it", "as Ctrl-C does", "?: less"] {
            assert!(words.contains(part), "{part}: {foot:?}");
        }
    }
}

#[test]
fn what_nobody_works_on_is_waited_for_by_nobody() {
    let mut left = board();
    left.slots = None;
    for row in &mut left.rows[3..6] {
        row.state = State::Incomplete;
    }
    left.rows[5].state = State::Unreadable;
    left.abandoned = Some("runner run mnist_sweep.toml".into());
    insta::assert_snapshot!(drawn(&[left.clone()], 80, 24), @r#"
    mnist_sweep  2 of 8 runs ended  1 failed  1 interrupted  1 cannot be read
    2 incomplete
    no runner is active; resume with: runner run mnist_sweep.toml
    2 not started: optimizer=adam,learning_rate=0.01-s2, …
    failed  sgd, 0.1-s1  not_finite: the loss is infinite since step 31; lower the …
    up/down select  s stop it  a start no more  q quit  ? help
    "#);
    insta::assert_snapshot!(words::board(&left), @r#"
    mnist_sweep: 2 of 8 runs ended, 1 failed, 1 interrupted; no runner is active; resume with: runner run mnist_sweep.toml
      optimizer=sgd,learning_rate=0.1-s1  failed (not_finite)
      optimizer=sgd,learning_rate=0.1-s2  completed
      optimizer=sgd,learning_rate=0.01-s1  interrupted
      optimizer=adam,learning_rate=0.1-s1  incomplete, no runner is active  epoch 4/10  valid/accuracy 0.8600 last
      optimizer=adam,learning_rate=0.1-s2  incomplete, no runner is active  epoch 1/10
      optimizer=adam,learning_rate=0.01-s1  cannot be read
      optimizer=adam,learning_rate=0.01-s2  not started
      optimizer=adam,learning_rate=0.001-s1  not started
    "#);
}
