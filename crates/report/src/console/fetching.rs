//! Progress bars for downloads and decoding.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Mode;

/// A bar before the rest, if the terminal is wide enough for both.
fn style(rest: &str) -> ProgressStyle {
    let width = terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| width.0);
    let template = match width {
        0..60 => rest.to_owned(),
        _ => format!("{{bar:20}} {rest}"),
    };
    let style = ProgressStyle::with_template(&template);
    style
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// A bar for a download, or lines without a terminal.
pub struct Fetching {
    bar: ProgressBar,
}

impl Fetching {
    /// A bar over the bytes of a download, shown from the first byte on.
    pub fn download(mode: Mode) -> Self {
        Self::new(mode, "{bytes}/{total_bytes}  {wide_msg}")
    }

    /// A bar for decoding, in the reader's unit.
    pub fn decoding(mode: Mode) -> Self {
        Self::new(mode, "{percent} %  {wide_msg}")
    }

    fn new(mode: Mode, template: &str) -> Self {
        let target = match mode {
            Mode::Normal => ProgressDrawTarget::stderr(),
            Mode::Quiet => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style(template));
        Self { bar }
    }

    /// Shows the progress of a file.
    pub fn show(&self, file: &str, received: u64, total: Option<u64>) {
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_message(super::line::plain(file));
        self.bar.set_position(received);
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
