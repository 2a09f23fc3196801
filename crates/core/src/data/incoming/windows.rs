//! Windows of consecutive rows, across the pieces of a file.

use std::sync::Arc;

use super::Id;
use super::Origin;
use crate::data::encode::Encoder;
use crate::data::records::{Records, Writer};
use crate::data::serve::{Set, Split};
use crate::spec::data::WindowSpec;

/// State between two pieces.
pub(super) struct Windows {
    window: WindowSpec,
    has_targets: bool,
    /// The last records, concatenated.
    carried: Vec<u8>,
    origins: Vec<Origin>,
    /// The series segment of each: rows of one segment are consecutive.
    stretches: Vec<u64>,
    stretch: u64,
}

impl Windows {
    pub fn new(window: WindowSpec, has_targets: bool) -> Self {
        Self {
            window,
            has_targets,
            carried: Vec::new(),
            origins: Vec::new(),
            stretches: Vec::new(),
            stretch: 0,
        }
    }

    /// The rows of a window, including the one of its target if targets are read.
    pub fn num_rows(&self) -> usize {
        let ahead = if self.has_targets {
            self.window.horizon
        } else {
            0
        };
        self.window.length + ahead
    }

    /// The windows that end in new records: one for each row with enough rows before it. `rows` are the usable records,
    /// and `breaks` the records before which the series is interrupted.
    pub fn items(
        &mut self,
        records: Records,
        origins: Vec<Origin>,
        rows: &[u32],
        breaks: &[usize],
        encoder: Arc<Encoder>,
    ) -> (Split, Vec<String>, Vec<Vec<String>>) {
        let before = self.origins.len();
        let (joined, new) = self.join(&records, origins, rows, breaks);
        let reach = self.num_rows();
        let (mut starts, mut ids, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let num = new.len();
        for start in 0..(num + 1).saturating_sub(reach) {
            let last = start + reach - 1;
            // Windows that end in older records were returned before.
            if last < before || self.stretches[start] != self.stretches[last] {
                continue;
            }
            let origin = &new[start + self.window.length - 1];
            starts.push(start as u32);
            ids.push(match &origin.id {
                // The row that the prediction is for.
                Id::Row(row) => (row + self.window.horizon as u64).to_string(),
                Id::File(name) => name.clone(),
            });
            kept.push(origin.kept.clone());
        }
        self.carry(&joined, new, reach - 1);
        let set = Arc::new(Set {
            records: joined,
            encoder,
            graph: None,
            pairs: None,
        });
        let all = (0..num as u32).collect();
        (Split::of_windows(set, all, starts), ids, kept)
    }

    /// The records so far, followed by the usable new ones.
    fn join(
        &mut self,
        records: &Records,
        origins: Vec<Origin>,
        rows: &[u32],
        breaks: &[usize],
    ) -> (Records, Vec<Origin>) {
        let mut writer = Writer::of_new_data();
        writer.begin(records.columns().to_vec());
        // Writing to memory cannot fail.
        let _ = writer.push(&self.carried);
        let mut joined = std::mem::take(&mut self.origins);
        let mut last: Option<usize> = None;
        for (row, origin) in origins.into_iter().enumerate() {
            if rows.binary_search(&(row as u32)).is_err() {
                continue;
            }
            let from = last.map_or(0, |last| last + 1);
            let is_broken = breaks.iter().any(|at| (from..=row).contains(at));
            let is_other = joined
                .last()
                .is_some_and(|before: &Origin| before.group != origin.group);
            if is_broken || is_other {
                self.stretch += 1;
            }
            let _ = writer.push(records.record(row..row + 1));
            self.stretches.push(self.stretch);
            joined.push(origin);
            last = Some(row);
        }
        if breaks.iter().any(|at| *at > last.map_or(0, |last| last)) {
            self.stretch += 1;
        }
        (writer.into_records(), joined)
    }

    fn carry(&mut self, joined: &Records, origins: Vec<Origin>, num: usize) {
        let from = origins.len().saturating_sub(num);
        self.carried = joined.record(from..origins.len()).to_vec();
        self.stretches.drain(..from);
        self.origins = origins.into_iter().skip(from).collect();
    }
}
