//! A board as lines of a terminal: a pure function of the state and the available space.

use super::board::{Board, Row, State};
use super::line::{cut, cut_name, cut_words, left, plain, right, sparkline, width};
use crate::report::short_number;
use runner_core::event::Outcome;
use runner_core::show::show_bytes;
use runner_core::spec::section::Choice;

/// Columns reserved for a run's name.
const MIN_NAME: usize = 14;
/// Columns of a curve.
const CURVE: usize = 12;
/// Lines reserved for runs.
const MIN_RUNS: usize = 4;
/// Displayed failures; the report lists all of them.
const FAILURES: usize = 3;

/// The role of a part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Nothing particular.
    Plain,
    /// A label for the rest.
    Bold,
    /// Secondary information.
    Dim,
    /// A problem.
    Bad,
    /// The selection.
    Chosen,
}

/// A line in parts.
pub type Line = Vec<(Style, String)>;

/// The view of a board.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Columns of the terminal.
    pub width: usize,
    /// Available lines.
    pub height: usize,
    /// The selected run, by board and index.
    pub chosen: Option<(usize, usize)>,
    /// What keys do, or what was requested; empty if there are no keys.
    pub foot: String,
    /// Free and total bytes of the host's memory.
    pub memory: Option<(u64, u64)>,
}

/// The lines of boards, within the width and height of the view.
pub fn draw(boards: &[Board], view: &View) -> Vec<Line> {
    let mut foot = foot(view);
    let mut memory = memory(boards, view);
    let heads: Vec<Vec<Line>> = boards.iter().map(|board| head(board, view)).collect();
    let num_heads: usize = heads.iter().map(Vec::len).sum();
    // Every board's head comes before any board's runs, and some runs before the keys and the memory.
    if view.height < num_heads + foot.len() + MIN_RUNS {
        foot.clear();
    }
    let room = view.height.saturating_sub(foot.len());
    let mut lines = Vec::new();
    let mut body = room.saturating_sub(num_heads);
    if body < memory.len() + MIN_RUNS {
        memory.clear();
    }
    body -= memory.len();
    for (at, (board, head)) in boards.iter().zip(heads).enumerate() {
        lines.extend(head);
        let runs = runs(board, at, view, body);
        body = body.saturating_sub(runs.len());
        lines.extend(runs);
    }
    lines.extend(memory);
    lines.truncate(room);
    lines.extend(foot);
    lines.truncate(view.height);
    lines.iter().map(|line| fit(line, view.width)).collect()
}

/// The text of a line.
#[cfg(test)]
pub fn text(line: &Line) -> String {
    let parts = line.iter().map(|(_, text)| text.as_str());
    parts.collect::<String>().trim_end().to_owned()
}

/// The summary of an experiment.
fn head(board: &Board, view: &View) -> Vec<Line> {
    let (num_ended, num_failed) = board.num_ended();
    let under_way = board.under_way().count();
    let incomplete = num(board, |state| *state == State::Incomplete);
    let mut parts = vec![
        (Style::Bold, plain(&board.experiment)),
        (
            Style::Plain,
            format!("{num_ended} of {} runs ended", board.rows.len()),
        ),
    ];
    if num_failed > 0 {
        parts.push((Style::Bad, format!("{num_failed} failed")));
    }
    if board.num_interrupted() > 0 {
        parts.push((
            Style::Bad,
            format!("{} interrupted", board.num_interrupted()),
        ));
    }
    let unreadable = num(board, |state| *state == State::Unreadable);
    if unreadable > 0 {
        parts.push((Style::Bad, format!("{unreadable} cannot be read")));
    }
    if incomplete > 0 {
        parts.push((Style::Bad, format!("{incomplete} incomplete")));
    }
    match board.slots {
        Some(slots) => parts.push((Style::Plain, format!("{under_way} of {slots} slots"))),
        None if under_way > 0 => parts.push((Style::Plain, format!("{under_way} active"))),
        None => {}
    }
    let time_left = board.time_left();
    if !time_left.is_empty() {
        parts.push((Style::Plain, time_left));
    }
    let mut lines = flow(parts, view.width);
    if let Some(go_on) = board.go_on() {
        let pieces = broken(&plain(&go_on), view.width);
        lines.extend(pieces.into_iter().map(|piece| vec![(Style::Plain, piece)]));
    }
    lines
}

fn num(board: &Board, is_meant: impl Fn(&State) -> bool) -> usize {
    board.rows.iter().filter(|row| is_meant(&row.state)).count()
}

/// Parts separated by two spaces, on as many lines as they need.
fn flow(parts: Vec<(Style, String)>, columns: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = vec![Vec::new()];
    let mut used = 0;
    for (style, part) in parts {
        let wide = width(&part);
        if used > 0 && used + 2 + wide > columns {
            lines.push(Vec::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push((Style::Plain, "  ".into()));
                used += 2;
            }
            line.push((style, part));
            used += wide;
        }
    }
    lines
}

/// The memory of active runs, if measured, and of the host.
fn memory(boards: &[Board], view: &View) -> Vec<Line> {
    let rows = || {
        let rows = boards.iter().flat_map(|board| &board.rows);
        rows.filter(|row| row.state.is_under_way())
    };
    if rows().next().is_none() {
        return Vec::new();
    }
    let mut by_device: Vec<(String, u64)> = Vec::new();
    for row in rows() {
        let Some(held) = row.held_bytes else { continue };
        let device = row.device.to_string();
        match by_device.iter_mut().find(|(known, _)| *known == device) {
            Some((_, bytes)) => *bytes += held,
            None => by_device.push((device, held)),
        }
    }
    let mut parts = vec![(Style::Plain, "memory".to_owned())];
    for (device, bytes) in by_device {
        parts.push((
            Style::Plain,
            format!("{} used on {device}", show_bytes(bytes)),
        ));
    }
    let unknown = rows().filter(|row| row.held_bytes.is_none()).count();
    if unknown > 0 {
        parts.push((Style::Dim, format!("{unknown} not measured yet")));
    }
    if let Some((free, all)) = view.memory {
        let host = format!(
            "{} of {} free on the host",
            show_bytes(free),
            show_bytes(all)
        );
        parts.push((Style::Dim, host));
    }
    flow(parts, view.width)
}

/// Active runs, waiting ones, and failures, in at most this many lines.
fn runs(board: &Board, at: usize, view: &View, room: usize) -> Vec<Line> {
    let under_way: Vec<usize> = board.under_way().collect();
    let mut end = Vec::new();
    let rows = board.rows.iter().enumerate();
    let waiting: Vec<usize> = rows
        .filter(|(_, row)| row.state == State::Waiting)
        .map(|(at, _)| at)
        .collect();
    if !waiting.is_empty() {
        let how = if board.starts_no_more || board.abandoned.is_some() {
            "not started"
        } else {
            "waiting"
        };
        let text = format!("{} {how}", waiting.len());
        let names = waiting.iter().map(|at| plain(&board.rows[*at].id));
        end.push(vec![(Style::Dim, with_names(text, names, view.width))]);
    }
    let failed = board.rows.iter().enumerate().rev();
    let failed = failed.filter_map(|(run, row)| match &row.state {
        State::Ended(Outcome::Failed { class, message, .. }) => {
            let with = |form: Form| {
                let name = form.name(board, run);
                plain(&format!("failed  {name}  {}: {message}", class.name()))
            };
            let whole = with(Form::Whole);
            let text = if width(&whole) > view.width {
                with(Form::Values)
            } else {
                whole
            };
            Some(vec![(Style::Bad, cut_words(&text, view.width))])
        }
        _ => None,
    });
    end.extend(failed.take(FAILURES));
    let for_runs = if under_way.is_empty() { 0 } else { 2 };
    end.truncate((room / 2).min(room.saturating_sub(for_runs)));
    let room = room - end.len();
    let mut lines = Vec::new();
    // A head, a run, and a line for those that do not fit.
    if !under_way.is_empty() && room >= 2 {
        let columns = Columns::new(board, &under_way, view.width);
        let all_fit = under_way.len() < room;
        let shown = if all_fit {
            under_way.len()
        } else {
            (room - 2).max(1)
        };
        let chosen = view.chosen.filter(|(on, _)| *on == at);
        let chosen = chosen.and_then(|(_, run)| under_way.iter().position(|r| *r == run));
        // The selected run is always visible.
        let first = chosen.map_or(0, |at| (at + 1).saturating_sub(shown));
        lines.push(columns.head(board));
        for (place, run) in under_way.iter().enumerate().skip(first).take(shown) {
            let name = columns.form.name(board, *run);
            lines.push(columns.row(&board.rows[*run], &name, Some(place) == chosen));
        }
        let hidden = under_way.len() - shown;
        if hidden > 0 && lines.len() < room {
            lines.push(vec![(Style::Dim, format!("  {hidden} more active"))]);
        }
    }
    lines.extend(end);
    lines
}

/// A text with as many whole names as there is room for.
fn with_names(text: String, names: impl Iterator<Item = String>, columns: usize) -> String {
    let mut shown = text;
    let mut names = names.peekable();
    let mut separator = ": ";
    while let Some(name) = names.next() {
        // Room for the mark of those that are missing.
        let more = if names.peek().is_some() { 3 } else { 0 };
        if width(&shown) + separator.len() + width(&name) + more > columns {
            return shown + if separator == ", " { ", …" } else { "" };
        }
        shown += separator;
        shown += &name;
        separator = ", ";
    }
    shown
}

/// How much of the runs' names is shown.
#[derive(Clone, Copy)]
enum Form {
    Whole,
    Differing,
    Values,
}

impl Form {
    fn name(self, board: &Board, run: usize) -> String {
        let values = board.names().values.as_ref();
        match (self, values) {
            (Self::Whole, _) => plain(&board.rows[run].id),
            (Self::Values, Some((values, _))) => values[run].clone(),
            (Self::Differing | Self::Values, _) => board.names().differing[run].clone(),
        }
    }

    /// The keys that the names lack.
    fn keys(self, board: &Board) -> Option<&str> {
        let values = board.names().values.as_ref();
        matches!(self, Self::Values)
            .then(|| values.map(|(_, keys)| keys.as_str()))
            .flatten()
    }
}

/// The columns that fit the terminal.
struct Columns {
    form: Form,
    /// Whether a name does not fit.
    is_cut: bool,
    columns: usize,
    name: usize,
    epoch: usize,
    value: Option<usize>,
    curve: usize,
    rate: bool,
    held: bool,
    bar: usize,
}

const RATE: usize = 9;
const HELD: usize = 10;
const VALUE: usize = 9;

impl Columns {
    /// The columns with the longest names that fit.
    fn new(board: &Board, under_way: &[usize], columns: usize) -> Self {
        let mut of = Self::with(Form::Whole, board, under_way, columns);
        for form in [Form::Differing, Form::Values] {
            if of.is_cut {
                of = Self::with(form, board, under_way, columns);
            }
        }
        of
    }

    fn with(form: Form, board: &Board, under_way: &[usize], columns: usize) -> Self {
        let rows = || under_way.iter().map(|run| &board.rows[*run]);
        let names = under_way.iter().map(|run| width(&form.name(board, *run)));
        let wanted = names.max().unwrap_or(0).max(3);
        let epochs = rows().map(|row| row.epochs).max().unwrap_or(0);
        let epoch = (2 * epochs.to_string().len() + 1).max(5);
        // A mark, the name, and the progress.
        let fixed = 2 + 2 + epoch + 6;
        let mut of = Self {
            form,
            is_cut: false,
            columns,
            name: 0,
            epoch,
            value: None,
            curve: 0,
            rate: false,
            held: false,
            bar: 0,
        };
        let name = wanted.min(MIN_NAME.max(columns / 3));
        let mut free = columns.saturating_sub(fixed + name);
        let mut take = |wide: usize| {
            let fits = free >= wide;
            free -= if fits { wide } else { 0 };
            fits
        };
        let metric = width(&board.objective).clamp(VALUE, VALUE + 1 + CURVE);
        if take(VALUE + 2) {
            of.value = Some(VALUE);
        }
        if of.value.is_some() && take(CURVE + 1) {
            of.curve = CURVE;
            of.value = Some(VALUE.max(metric.saturating_sub(CURVE + 1)));
        }
        of.rate = take(RATE + 2);
        of.held = take(HELD + 2);
        if take(12) {
            of.bar = 12;
        }
        let head = form.keys(board).map_or(0, |keys| width(keys) + 6);
        of.name = (name + free)
            .min(wanted.max(head))
            .max(columns.saturating_sub(fixed).min(3));
        of.is_cut = of.name < wanted;
        of
    }

    fn head(&self, board: &Board) -> Line {
        let keys = self.form.keys(board);
        let keys = keys.map(|keys| format!("run ({keys})"));
        let label = keys.filter(|keys| width(keys) <= self.name);
        let mut line = format!(
            "  {}  {}",
            left(label.as_deref().unwrap_or("run"), self.name),
            right("epoch", self.epoch)
        );
        if self.bar > 0 {
            line += &" ".repeat(self.bar);
        }
        line += "  done";
        if let Some(value) = self.value {
            let columns = value + if self.curve > 0 { 1 + self.curve } else { 0 };
            line += "  ";
            let metric = &board.objective;
            let (_, short) = metric.rsplit_once('/').unwrap_or(("", metric));
            let fits = width(metric) <= columns;
            line += &left(if fits { metric } else { short }, columns);
        }
        if self.rate {
            line += "  ";
            line += &right("steps/s", RATE);
        }
        if self.held {
            line += "  ";
            line += &right("memory", HELD);
        }
        vec![(Style::Dim, line)]
    }

    fn row(&self, row: &Row, name: &str, is_chosen: bool) -> Line {
        let style = if is_chosen {
            Style::Chosen
        } else {
            Style::Plain
        };
        let mark = if is_chosen { "> " } else { "  " };
        let mut line = vec![(
            style,
            format!("{mark}{}", left(&cut_name(name, self.name), self.name)),
        )];
        let note = match &row.state {
            State::Again(how) => Some(how.clone()),
            State::Stopping => Some("stopping".to_owned()),
            _ => None,
        };
        let epoch = format!("{}/{}", row.epoch, row.epochs);
        let mut rest = format!("  {}", right(&epoch, self.epoch));
        if self.bar > 0 {
            rest += "  ";
            rest += &bar(row.done(), self.bar - 2);
        }
        rest += &right(&format!("{:.0} %", (row.done() * 100.0).floor()), 6);
        line.push((Style::Plain, rest));
        if let Some(note) = note {
            let used: usize = line.iter().map(|(_, part)| width(part)).sum();
            let note = cut_words(&plain(&note), self.columns.saturating_sub(used + 2));
            line.push((Style::Bad, format!("  {note}")));
            return line;
        }
        let mut rest = String::new();
        if let Some(columns) = self.value {
            let newest = row.curve.last();
            let newest = newest.map_or(String::new(), |value| number_in(*value, columns));
            rest += "  ";
            rest += &left(&newest, columns);
        }
        if self.curve > 0 {
            rest += " ";
            rest += &left(&sparkline(&row.curve, self.curve), self.curve);
        }
        if self.rate {
            let rate = row.steps_per_sec.filter(|rate| rate.is_finite());
            let rate = if row.is_selecting() {
                "kernels…".to_owned()
            } else {
                rate.map_or(String::new(), short_number)
            };
            rest += "  ";
            rest += &right(&rate, RATE);
        }
        if self.held {
            rest += "  ";
            rest += &right(&row.held_bytes.map_or(String::new(), show_bytes), HELD);
        }
        line.push((Style::Plain, rest));
        line
    }
}

/// A number with as many digits as there is room for: a part of a number would be another one.
fn number_in(value: f64, columns: usize) -> String {
    let all = std::iter::once(short_number(value));
    let fewer = (0..3).rev().map(|digits| format!("{value:.digits$e}"));
    let mut all = all.chain(fewer);
    all.find(|text| width(text) <= columns).unwrap_or_default()
}

fn bar(done: f64, columns: usize) -> String {
    let full = (done * columns as f64) as usize;
    let full = full.min(columns);
    "━".repeat(full) + &"╌".repeat(columns - full)
}

fn foot(view: &View) -> Vec<Line> {
    let parts = view.foot.split("  ").filter(|part| !part.is_empty());
    let parts = parts.flat_map(|part| broken(&plain(part), view.width));
    if view.foot.is_empty() {
        Vec::new()
    } else {
        flow(parts.map(|part| (Style::Dim, part)).collect(), view.width)
    }
}

/// A text in pieces of limited width, broken between words.
fn broken(text: &str, columns: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match pieces.last_mut() {
            Some(piece) if width(piece) + 1 + width(word) <= columns => {
                piece.push(' ');
                piece.push_str(word);
            }
            _ => pieces.push(word.to_owned()),
        }
    }
    pieces
}

/// A line truncated to a width.
fn fit(line: &Line, columns: usize) -> Line {
    let mut free = columns;
    let mut kept = Vec::new();
    for (style, part) in line {
        let part = cut(part, free);
        free -= width(&part);
        kept.push((*style, part));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{VALUE, number_in};

    #[test]
    fn a_number_loses_digits_and_no_end() {
        assert_eq!(number_in(0.971_312, VALUE), "0.9713");
        assert_eq!(number_in(-1.234_5e-10, VALUE), "-1.23e-10");
        assert_eq!(number_in(-1.234_5e-100, VALUE), "-1.2e-100");
        assert_eq!(number_in(-1.234_5e-100, 3), "");
    }
}
