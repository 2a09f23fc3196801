//! The tokens of large texts in the cache: a text is tokenized once, and its tokens are mapped.
//!
//! A file contains the tokens of all splits as records of one number each, with the tokenizer that was fitted to the
//! train split. Its name is a digest of everything that they depend on: the content of the files and how they are read,
//! the settings of the tokenizer, and the split. It is written under a temporary name and has checksums, as all records
//! of the cache.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::json;

use crate::data::cache::Cached;
use crate::data::encode::tokenizer::{Tokenizer, pieces};
use crate::data::known::Trust;
use crate::data::read::unwritable;
use crate::data::records::{Column, ColumnKind, Part, Records};
use crate::data::serve::{Tokens, little_endian};
use crate::data::{DataError, sha256_hex};
use crate::disk;
use crate::spec::data::{DocumentPositions, FilesSpec, SplitSpec, TokensSpec};

/// Incremented when the same text gets other tokens.
const VERSION: u32 = 1;
/// Smaller texts are tokenized each time.
const FROM_BYTES: u64 = 1 << 20;
/// Bytes of text that are tokenized at a time: their tokens are in memory.
const BATCH: usize = 16 << 20;

/// Gives the tokens of a part of a text, and is told whether it is the last one.
pub(super) type Encode<'a> = dyn Fn(&str, bool) -> Result<Vec<i32>, DataError> + Sync + 'a;

/// The place of the tokens of a text.
pub(super) struct Place(Cached);

/// Tokens and their tokenizer.
pub(super) struct Stored {
    pub(super) tokenizer: Tokenizer,
    /// Of train, valid and test.
    pub(super) tokens: [Tokens; 3],
}

impl Place {
    /// The place of the tokens of files with a digest; `None` if they are few.
    pub(super) fn of(
        files: &FilesSpec,
        (digest, column): (&str, usize),
        split: &SplitSpec,
        records: &Records,
        cache: &Path,
    ) -> Option<Self> {
        if disk::IS_MEMORY || records.header.text_bytes < FROM_BYTES {
            return None;
        }
        // What does not change tokens is left out; the digest contains the files of tokenizers and templates.
        let tokens = TokensSpec {
            path: Vec::new(),
            template: Vec::new(),
            length: 0,
            stride: None,
            min_vocabulary: 0,
            masked: None,
            document_positions: DocumentPositions::Restart,
            ..files.tokens.clone()
        };
        let key = json!({
            "version": VERSION,
            "data": digest,
            "column": column,
            "tokens": tokens,
            "valid": split.valid,
            "test": split.test,
        });
        let key = sha256_hex(key.to_string().as_bytes());
        let name = format!("{}.tokens", &key[..32]);
        Some(Self(Cached::new(cache, &name, key)))
    }

    /// The tokens, if they are there and sound.
    pub(super) fn open(&self, tokens: &TokensSpec, trust: Trust) -> Option<Stored> {
        let records = self.0.open(trust)?;
        if records.record_size() != size_of::<i32>() {
            self.0.warn("its content does not match its name");
            return None;
        }
        let mut tokenizer: Tokenizer = serde_json::from_str(&records.header.note)
            .inspect_err(|error| self.0.warn(&error.to_string()))
            .ok()?;
        tokenizer.spec = tokens.clone();
        Some(Stored::new(tokenizer, records))
    }

    /// Tokenizes the texts of the splits into the file, which is then opened.
    pub(super) fn write(
        &self,
        tokenizer: &Tokenizer,
        splits: &[Vec<&str>; 3],
        are_whole: bool,
        encode: &Encode<'_>,
    ) -> Result<Stored, DataError> {
        let mut writer = self.0.writer()?.unmeasured();
        writer.begin(vec![Column::scalar("token", ColumnKind::Whole)]);
        writer.note(serde_json::to_string(tokenizer).unwrap_or_default());
        for (part, texts) in [Part::Train, Part::Valid, Part::Test]
            .into_iter()
            .zip(splits)
        {
            writer.part(part);
            let parts = texts
                .iter()
                .flat_map(|text| parts_of(tokenizer, text, are_whole));
            let mut parts = parts.peekable();
            while parts.peek().is_some() {
                let (mut batch, mut bytes) = (Vec::new(), 0);
                while let Some(part) = parts.next_if(|_| bytes < BATCH) {
                    bytes += part.0.len();
                    batch.push(part);
                }
                let encoded = batch
                    .par_iter()
                    .map(|(text, is_last)| Ok(little_endian(&encode(text, *is_last)?)));
                for tokens in encoded.collect::<Result<Vec<_>, DataError>>()? {
                    writer.push(&tokens).map_err(|e| unwritable(&e))?;
                }
            }
        }
        let records = self.0.persist(writer)?;
        Ok(Stored::new(tokenizer.clone(), records))
    }
}

/// The parts of a text that are tokenized on their own, and whether each is the last.
fn parts_of<'a>(tokenizer: &Tokenizer, text: &'a str, is_whole: bool) -> Vec<(&'a str, bool)> {
    let mut parts: Vec<_> = if is_whole || text.is_empty() {
        vec![(text, false)]
    } else {
        pieces(tokenizer.spec.tokenizer, text)
            .map(|piece| (piece, false))
            .collect()
    };
    if let Some(last) = parts.last_mut() {
        last.1 = true;
    }
    parts
}

impl Stored {
    fn new(tokenizer: Tokenizer, records: Records) -> Self {
        let [train, valid, test] = records.header.parts;
        let records = Arc::new(records);
        let of = |range: Range<usize>| Tokens::Stored(records.clone(), range);
        Self {
            tokenizer,
            tokens: [
                of(0..train),
                of(train..train + valid),
                of(train + valid..train + valid + test),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::data::cache;
    use crate::data::load::{Reading, Splits};
    use crate::spec::data::{DataKind, Scale, ScaleAxis, SplitOrder};

    fn loaded(files: &FilesSpec, cache: &Path) -> Splits {
        let split = SplitSpec {
            valid: 0.1,
            test: 0.1,
            order: SplitOrder::Time,
            ..SplitSpec::default()
        };
        let reading = Reading {
            split: &split,
            scale: Scale::None,
            scale_axis: ScaleAxis::Auto,
            augment: None,
            label_noise: 0.0,
            measure: true,
        };
        let digest = cache::digest(files, cache, Trust::Bytes).unwrap();
        reading.files(files, &digest, cache, &|_, _| ()).unwrap()
    }

    /// The digests of all splits.
    fn digests(files: &FilesSpec, cache: &Path) -> [String; 3] {
        let Splits {
            train, valid, test, ..
        } = loaded(files, cache);
        [train.digest(), valid.digest(), test.unwrap().digest()]
    }

    fn file(cache: &Path) -> PathBuf {
        let names = fs::read_dir(cache)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut names = names.filter(|path| path.extension().is_some_and(|it| it == "tokens"));
        let found = names.next().unwrap();
        assert!(names.next().is_none());
        found
    }

    #[test]
    fn tokens_are_cached_once_checked_and_the_same_with_any_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let line = |at: usize| format!("ship {at} leaves at {} – or later\n", at * 7 % 24);
        let text: String = (0..50_000).map(line).collect();
        fs::write(folder.path().join("text.txt"), &text).unwrap();
        for kind in [
            crate::spec::data::TokenizerKind::Char,
            crate::spec::data::TokenizerKind::Bpe,
        ] {
            let mut files = FilesSpec::usual(DataKind::Text, "text.txt".into());
            files.tokens = TokensSpec {
                tokenizer: kind,
                max_vocabulary: 300,
                separator: (kind == crate::spec::data::TokenizerKind::Char)
                    .then(|| "\n".to_owned()),
                ..TokensSpec::default()
            };
            let files = cache::resolve(&files, folder.path()).unwrap();
            let place = folder.path().join(format!("{kind:?}"));
            let first = digests(&files, &place);
            let path = file(&place);
            let whole = fs::read(&path).unwrap();
            // The tokens of the text as a whole, by a tokenizer that has no parts.
            let Splits { train, .. } = loaded(&files, &place);
            let tokenizer = train.set().encoder.input.tokenizer().unwrap().clone();
            let cut = (text.len() as f64 * 0.8).round() as usize;
            let cut = text.ceil_char_boundary(cut);
            let mut expected = tokenizer.encode(&text[..cut]).unwrap();
            expected.extend(tokenizer.separator());
            let served = train.serve(&[0, 1, 1000], None);
            let crate::data::Values::Tokens(found) = served.values else {
                panic!("tokens are served");
            };
            assert_eq!(found[..128], expected[..128]);
            assert_eq!(found[128..], expected[64_000..64_064]);
            assert_eq!(digests(&files, &place), first);
            // Half-written, damaged, and of another content.
            let mut flipped = whole.clone();
            flipped[whole.len() / 3] ^= 4;
            for wrong in [&whole[..whole.len() / 2], &flipped[..], &[]] {
                crate::testing::rewrite(&path, wrong);
                assert_eq!(digests(&files, &place), first);
                assert!(fs::read(&path).unwrap() == whole);
            }
            // Other items of the same tokens.
            let mut longer = files.clone();
            longer.tokens.length = 100;
            assert_ne!(digests(&longer, &place), first);
            file(&place);
            let one = rayon::ThreadPoolBuilder::new()
                .num_threads(1)
                .build()
                .unwrap();
            let other = folder.path().join(format!("one {kind:?}"));
            assert_eq!(one.install(|| digests(&files, &other)), first);
            assert!(fs::read(file(&other)).unwrap() == whole);
        }
    }
}
