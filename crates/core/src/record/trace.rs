//! The trace of a run, which resumed runs and reproductions are compared with step by step.
//!
//! `trace/losses.f64` contains the loss of each update, 8 bytes each, little-endian, indexed by step.
//! `trace/gradient_norms.f64` contains the norm of the gradients of each update in the same way, if
//! `train.log_gradient_norms` asks for it; NaN where there is none.
//! `trace/digests.csv` contains a digest of each parameter at the start of training and at the end of each epoch, and
//! finally of the optimizer's state. A resumed run truncates both to its checkpoint, so that they equal those of an
//! uninterrupted run. A checkpoint contains digests of both, and a resumed run reports when they do not match: lost
//! losses are NaN from then on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{RunFolder, RunRecord, write_whole};
use crate::hash::hex;
use crate::spec::plain_file;

/// The prefix of the optimizer state's paths.
pub const OPTIMIZER: &str = "optimizer/";

/// The digests of all parameters after some updates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digests {
    /// Updates before.
    pub step: usize,
    /// Path and digest of each, in the network's order.
    pub parameters: Vec<(String, String)>,
}

/// A trace as it is on disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The loss of each update; NaN if lost.
    pub losses: Vec<f64>,
    /// In step order.
    pub digests: Vec<Digests>,
}

/// Digests of a trace up to a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSums {
    /// sha256 of the losses.
    pub losses: String,
    /// sha256 of the norms of gradients, if they are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub norms: Option<String>,
    /// sha256 of the digests.
    pub digests: String,
}

/// The files of a trace, as a run's record names them.
pub const TRACE_FILES: [&str; 2] = ["trace/losses.f64", "trace/digests.csv"];

/// The norms of the gradients, which only some runs record.
pub const NORMS_FILE: &str = "trace/gradient_norms.f64";

impl Trace {
    /// Reads the trace of a run, checked against its record.
    pub fn read_recorded(folder: &RunFolder, record: &RunRecord) -> io::Result<Self> {
        for name in TRACE_FILES {
            folder.check_file(record, name)?;
        }
        Self::read(folder)
    }

    /// Reads only the losses of a run, checked against its record; none if there are none.
    pub fn read_losses(folder: &RunFolder, record: &RunRecord) -> io::Result<Vec<f64>> {
        folder.check_file(record, TRACE_FILES[0])?;
        Ok(losses_in(&read_if_there(losses_path(folder))?))
    }

    /// Reads the norms of the gradients of each update of a run, checked against its record; none if there are none.
    pub fn read_norms(folder: &RunFolder, record: &RunRecord) -> io::Result<Vec<f64>> {
        folder.check_file(record, NORMS_FILE)?;
        Ok(losses_in(&read_if_there(norms_path(folder))?))
    }

    /// Reads the trace of a run; an empty one if there is none. A partial end is ignored.
    pub fn read(folder: &RunFolder) -> io::Result<Self> {
        let losses = read_if_there(losses_path(folder))?;
        let digests = read_if_there(digests_path(folder))?;
        Ok(Self::of(&losses, &String::from_utf8_lossy(&digests)))
    }

    /// The trace with the content of its files. A partial end is ignored.
    pub fn of(losses: &[u8], text: &str) -> Self {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut digests: Vec<Digests> = Vec::new();
        for line in whole.lines().skip(1) {
            let mut cells = line.rsplitn(2, ',');
            let (Some(digest), Some(rest)) = (cells.next(), cells.next()) else {
                continue;
            };
            let Some((step, path)) = rest.split_once(',') else {
                continue;
            };
            let Ok(step) = step.parse() else { continue };
            let parameter = (path.to_owned(), digest.to_owned());
            match digests.last_mut() {
                Some(last) if last.step == step => last.parameters.push(parameter),
                _ => digests.push(Digests {
                    step,
                    parameters: vec![parameter],
                }),
            }
        }
        Self {
            losses: losses_in(losses),
            digests,
        }
    }

    /// Gives parameters the names that they have in the last digests, in the file too. A run may continue with layers of
    /// other names, and parameters keep their order.
    pub fn rename(folder: &RunFolder) -> io::Result<()> {
        let digests = read_if_there(digests_path(folder))?;
        let mut trace = Self::of(&[], &String::from_utf8_lossy(&digests));
        let is_weight = |(path, _): &&(String, String)| !path.starts_with(OPTIMIZER);
        let of = |digests: &Digests| -> Vec<String> {
            let weights = digests.parameters.iter().filter(is_weight);
            weights.map(|(path, _)| path.clone()).collect()
        };
        let Some(last) = trace.digests.last().map(of) else {
            return Ok(());
        };
        if trace.digests.iter().all(|digests| of(digests) == last) {
            return Ok(());
        }
        for digests in &mut trace.digests {
            if digests.parameters.len() == last.len() {
                let named = digests.parameters.iter_mut().zip(&last);
                named.for_each(|((path, _), name)| path.clone_from(name));
            }
        }
        write_whole(&digests_path(folder), trace.digests_file().as_bytes())
    }

    /// The content of `trace/losses.f64`.
    pub fn losses_file(&self) -> Vec<u8> {
        let losses = self.losses.iter();
        losses.flat_map(|loss| loss.to_le_bytes()).collect()
    }

    /// The content of `trace/digests.csv`.
    pub fn digests_file(&self) -> String {
        let mut text = HEAD.to_owned();
        text.extend(self.digests.iter().map(lines));
        text
    }
}

fn losses_in(bytes: &[u8]) -> Vec<f64> {
    let losses = bytes.chunks_exact(8);
    losses
        .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap_or_default()))
        .collect()
}

/// A number for each update, in a file.
#[derive(Debug)]
struct Series {
    file: File,
    num: usize,
    sum: Sha256,
    /// How many were missing or changed when it was opened.
    lost: usize,
}

impl Series {
    /// Opens the file of a run that resumes after some updates: everything later is cut off.
    fn open(path: &Path, step: usize, sum: Option<&String>) -> io::Result<Self> {
        let mut bytes = read_if_there(path.to_owned())?;
        bytes.truncate(8 * step);
        bytes.truncate(bytes.len() / 8 * 8);
        // Removed numbers are not invented, and changed ones are not kept.
        let mut lost = step - bytes.len() / 8;
        if sum.is_some_and(|sum| *sum != hex(&Sha256::digest(&bytes))) {
            bytes.clear();
            lost = step;
        }
        while bytes.len() < 8 * step {
            bytes.extend(f64::NAN.to_le_bytes());
        }
        if lost > 0 || step == 0 {
            write_whole(path, &bytes)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        file.set_len(bytes.len() as u64)?;
        Ok(Self {
            file,
            num: step,
            sum: Sha256::new_with_prefix(&bytes),
            lost,
        })
    }

    fn add(&mut self, numbers: &[f64]) -> io::Result<()> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        self.file.write_all(&bytes)?;
        self.sum.update(&bytes);
        self.num += numbers.len();
        Ok(())
    }

    fn sum(&self) -> String {
        hex(&self.sum.clone().finalize())
    }
}

/// Writes the trace of a resumed run.
#[derive(Debug)]
pub struct TraceWriter {
    losses: Series,
    norms: Option<Series>,
    digests: File,
    digests_sum: Sha256,
    lost: (usize, bool),
}

impl TraceWriter {
    /// Opens the trace of a run that resumes after some updates, where `epoch_end` is the end of its last finished
    /// epoch: everything later is cut off. What does not match `sums` is lost.
    pub fn open(
        folder: &RunFolder,
        step: usize,
        epoch_end: usize,
        sums: Option<&TraceSums>,
    ) -> io::Result<Self> {
        fs::create_dir_all(folder.trace())?;
        let losses = Series::open(&losses_path(folder), step, sums.map(|sums| &sums.losses))?;
        let mut lost = (losses.lost, false);
        let mut text = HEAD.to_owned();
        if step > 0 {
            let there = Trace::read(folder)?.digests.into_iter();
            for mut digests in there.filter(|digests| digests.step <= epoch_end) {
                // The optimizer's state belongs to the end, which this no longer is.
                let is_kept = |(path, _): &(String, String)| !path.starts_with(OPTIMIZER);
                digests.parameters.retain(is_kept);
                text += &lines(&digests);
            }
            if sums.is_some_and(|sums| sums.digests != hex(&Sha256::digest(&text))) {
                HEAD.clone_into(&mut text);
                lost.1 = true;
            }
        }
        write_whole(&digests_path(folder), text.as_bytes())?;
        let mut digests = OpenOptions::new();
        let digests = digests.create(true).append(true);
        Ok(Self {
            losses,
            norms: None,
            digests: digests.open(digests_path(folder))?,
            digests_sum: Sha256::new_with_prefix(&text),
            lost,
        })
    }

    /// Also records the norms of gradients. Those that an earlier version did not record are not lost.
    pub fn with_norms(mut self, folder: &RunFolder, sums: Option<&TraceSums>) -> io::Result<Self> {
        let sum = sums.and_then(|sums| sums.norms.as_ref());
        let norms = Series::open(&norms_path(folder), self.losses.num, sum)?;
        if sum.is_some() {
            self.lost.0 = self.lost.0.max(norms.lost);
        }
        self.norms = Some(norms);
        Ok(self)
    }

    /// Updates whose losses or norms were missing when the trace was opened, and whether digests were; `None` if nothing was
    /// lost.
    pub fn lost(&self) -> Option<(usize, bool)> {
        Some(self.lost).filter(|lost| *lost != (0, false))
    }

    /// Digests of the trace after some updates; `None` if it has another length.
    pub fn sums(&self, step: usize) -> Option<TraceSums> {
        (self.losses.num == step).then(|| TraceSums {
            losses: self.losses.sum(),
            norms: self.norms.as_ref().map(Series::sum),
            digests: hex(&self.digests_sum.clone().finalize()),
        })
    }

    /// Adds the losses of the next updates, and the norms of their gradients, which are written if they are recorded.
    pub fn add_steps(&mut self, losses: &[f64], norms: &[f64]) -> io::Result<()> {
        self.losses.add(losses)?;
        self.norms.as_mut().map_or(Ok(()), |all| all.add(norms))
    }

    /// Adds the digests of a step.
    pub fn add_digests(&mut self, digests: &Digests) -> io::Result<()> {
        let text = lines(digests);
        self.digests.write_all(text.as_bytes())?;
        self.digests_sum.update(&text);
        Ok(())
    }
}

/// The first line of `digests.csv`.
const HEAD: &str = "step,parameter,sha256\n";

fn lines(digests: &Digests) -> String {
    let each = digests.parameters.iter();
    each.map(|(path, digest)| format!("{},{path},{digest}\n", digests.step))
        .collect()
}

fn losses_path(folder: &RunFolder) -> PathBuf {
    folder.trace().join("losses.f64")
}

fn norms_path(folder: &RunFolder) -> PathBuf {
    folder.0.join(NORMS_FILE)
}

fn digests_path(folder: &RunFolder) -> PathBuf {
    folder.trace().join("digests.csv")
}

fn read_if_there(path: PathBuf) -> io::Result<Vec<u8>> {
    match plain_file::read_whole(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(step: usize, digest: &str) -> Digests {
        let parameter = |path: &str| (path.to_owned(), digest.to_owned());
        Digests {
            step,
            parameters: vec![parameter("linear.weight"), parameter("odd,name.bias")],
        }
    }

    #[test]
    fn parameters_have_their_last_names() {
        let folder = tempfile::tempdir().unwrap();
        let folder = RunFolder(folder.path().to_owned());
        let mut writer = TraceWriter::open(&folder, 0, 0, None).unwrap();
        let named = |step: usize, names: [&str; 2]| Digests {
            step,
            parameters: names
                .map(|name| (name.to_owned(), format!("{step}")))
                .to_vec(),
        };
        writer
            .add_digests(&named(0, ["a.weight", "b.weight"]))
            .unwrap();
        writer
            .add_digests(&named(3, ["c.weight", "a.weight"]))
            .unwrap();
        drop(writer);
        Trace::rename(&folder).unwrap();
        let trace = Trace::read(&folder).unwrap();
        let names = ["c.weight", "a.weight"];
        assert_eq!(trace.digests, [named(0, names), named(3, names)]);
    }

    #[test]
    fn a_trace_is_cut_to_where_a_run_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let folder = RunFolder(folder.path().to_owned());
        assert_eq!(Trace::read(&folder).unwrap(), Trace::default());
        let mut writer = TraceWriter::open(&folder, 0, 0, None).unwrap();
        writer.add_digests(&digests(0, "a")).unwrap();
        writer.add_steps(&[1.5, -0.1], &[]).unwrap();
        writer.add_steps(&[0.25], &[]).unwrap();
        writer.add_digests(&digests(3, "b")).unwrap();
        drop(writer);
        // A kill leaves partial ends.
        let mut torn = fs::read(digests_path(&folder)).unwrap();
        torn.extend(b"6,linear.wei");
        fs::write(digests_path(&folder), torn).unwrap();
        let trace = Trace::read(&folder).unwrap();
        assert_eq!(trace.losses, [1.5, -0.1, 0.25]);
        assert_eq!(trace.digests, [digests(0, "a"), digests(3, "b")]);
        assert_eq!(
            Trace::of(&trace.losses_file(), &trace.digests_file()),
            trace
        );

        let mut writer = TraceWriter::open(&folder, 2, 0, None).unwrap();
        writer.add_steps(&[0.5], &[]).unwrap();
        let trace = Trace::read(&folder).unwrap();
        assert_eq!(trace.losses, [1.5, -0.1, 0.5]);
        assert_eq!(trace.digests, [digests(0, "a")]);

        drop(TraceWriter::open(&folder, 5, 3, None).unwrap());
        let losses = Trace::read(&folder).unwrap().losses;
        assert!(losses.len() == 5 && losses[3].is_nan());
        drop(TraceWriter::open(&folder, 0, 0, None).unwrap());
        assert_eq!(Trace::read(&folder).unwrap(), Trace::default());
    }

    #[test]
    fn what_was_changed_since_a_checkpoint_is_lost() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder(place.path().to_owned());
        let begin = || {
            let mut writer = TraceWriter::open(&folder, 0, 0, None).unwrap();
            writer.add_digests(&digests(0, "a")).unwrap();
            writer.add_steps(&[1.5, -0.1, 0.5], &[]).unwrap();
            writer.add_digests(&digests(3, "b")).unwrap();
            let sums = writer.sums(3).unwrap();
            assert_eq!(writer.sums(2), None);
            // After the checkpoint.
            writer.add_steps(&[0.25], &[]).unwrap();
            sums
        };
        let open = |sums: &TraceSums| TraceWriter::open(&folder, 3, 3, Some(sums)).unwrap();
        let sums = begin();
        let writer = open(&sums);
        assert_eq!(writer.lost(), None);
        assert_eq!(writer.sums(3).as_ref(), Some(&sums));
        let mut bytes = fs::read(losses_path(&folder)).unwrap();
        bytes[9] ^= 1;
        fs::write(losses_path(&folder), bytes).unwrap();
        assert_eq!(open(&sums).lost(), Some((3, false)));
        assert!(
            Trace::read(&folder)
                .unwrap()
                .losses
                .iter()
                .all(|l| l.is_nan())
        );
        let sums = begin();
        fs::remove_dir_all(folder.trace()).unwrap();
        let writer = open(&sums);
        assert_eq!(writer.lost(), Some((3, true)));
        // What was lost once is not lost again.
        let sums = writer.sums(3).unwrap();
        assert_eq!(open(&sums).lost(), None);
    }

    #[test]
    fn norms_are_cut_and_checked_like_losses() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder(place.path().to_owned());
        let open = |step: usize, sums: Option<&TraceSums>| {
            let writer = TraceWriter::open(&folder, step, step, sums).unwrap();
            writer.with_norms(&folder, sums).unwrap()
        };
        let mut writer = open(0, None);
        writer.add_steps(&[1.0, 2.0], &[10.0, f64::NAN]).unwrap();
        writer.add_steps(&[3.0], &[30.0]).unwrap();
        let sums = writer.sums(3).unwrap();
        writer.add_steps(&[4.0], &[40.0]).unwrap();
        drop(writer);
        let record = RunRecord::default();
        let norms = || Trace::read_norms(&folder, &record).unwrap();
        assert_eq!(norms().len(), 4);
        let writer = open(3, Some(&sums));
        assert_eq!((writer.lost(), writer.sums(3)), (None, Some(sums.clone())));
        assert_eq!((norms()[0], norms()[2], norms().len()), (10.0, 30.0, 3));
        fs::write(norms_path(&folder), [0; 24]).unwrap();
        assert_eq!(open(3, Some(&sums)).lost(), Some((3, false)));
        assert!(norms().iter().all(|norm| norm.is_nan()));
        assert_eq!(Trace::read(&folder).unwrap().losses, [1.0, 2.0, 3.0]);
        // A checkpoint of an earlier version, which recorded none.
        fs::remove_file(norms_path(&folder)).unwrap();
        let earlier = TraceSums {
            norms: None,
            ..sums
        };
        assert_eq!(open(3, Some(&earlier)).lost(), None);
        assert_eq!(norms().len(), 3);
    }
}
