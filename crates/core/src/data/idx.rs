//! The IDX format of the MNIST files: a magic number, big-endian sizes, and values; gzipped or not.

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::read::bounded::Bounded;
use super::{DataError, hex};
use crate::disk;
use crate::show::plain_io_error;
use crate::spec::plain_file;

/// Sizes of one file, from its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Size of each dimension; the first is the number of items.
    pub sizes: Vec<usize>,
    /// The kind of its values.
    pub values: Type,
}

/// The type of a file's values, in big-endian order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Unsigned bytes.
    UnsignedByte,
    /// Bytes.
    SignedByte,
    /// 16-bit integers.
    Short,
    /// 32-bit integers.
    Int,
    /// 32-bit floats.
    Float,
    /// 64-bit floats.
    Double,
}

impl Type {
    /// The type for a code, and the size of a value in bytes.
    fn by_code(code: u8) -> Option<(Self, usize)> {
        Some(match code {
            0x08 => (Type::UnsignedByte, 1),
            0x09 => (Type::SignedByte, 1),
            0x0b => (Type::Short, 2),
            0x0c => (Type::Int, 4),
            0x0d => (Type::Float, 4),
            0x0e => (Type::Double, 8),
            _ => return None,
        })
    }
}

/// A whole file of unsigned bytes.
#[derive(Debug)]
pub struct Read8 {
    /// Its sizes.
    pub header: Header,
    /// Its values.
    pub bytes: Vec<u8>,
    /// sha256 of the uncompressed header and values.
    pub sha256: String,
}

/// A reader, and the sum of what it has read.
struct Summed<R> {
    reader: R,
    sum: Sha256,
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let num = self.reader.read(buffer)?;
        self.sum.update(&buffer[..num]);
        Ok(num)
    }
}

/// The path of `name` in `folder`, gzipped or not, if the file exists.
pub fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let names = [name.to_owned(), format!("{name}.gz")];
    names
        .iter()
        .map(|n| folder.join(n))
        .find(|p| disk::is_file(p))
}

/// Reads the header of a file that must have `num_dims` dimensions of unsigned bytes.
pub fn read_header(path: &Path, num_dims: u8) -> Result<Header, DataError> {
    header_of(path, num_dims, &mut open(path)?)
}

/// Reads a whole file that must have `num_dims` dimensions of unsigned bytes.
pub fn read(path: &Path, num_dims: u8) -> Result<Read8, DataError> {
    let mut summed = Summed {
        reader: open(path)?,
        sum: Sha256::new(),
    };
    let reader = &mut summed;
    let header = header_of(path, num_dims, reader)?;
    let sizes = header.sizes.iter();
    let expected = sizes.copied().try_fold(1, usize::checked_mul);
    let Some(expected) = expected.filter(|bytes| *bytes < usize::MAX) else {
        let message = format!(
            "`{}` is damaged: the number of bytes in its header overflows",
            path.display()
        );
        return Err(DataError::new(message).help("delete the file, then download or copy it again"));
    };
    let mut bytes = Vec::with_capacity(expected.min(1 << 30));
    // One byte more than expected, to detect a longer file.
    let result = reader.take(expected as u64 + 1).read_to_end(&mut bytes);
    let short = |found: usize| {
        let message = format!(
            "`{}` is truncated: its header declares {expected} bytes of data, found {found}",
            path.display()
        );
        DataError::new(message).help("delete the file, then download or copy it again")
    };
    match result {
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Err(short(bytes.len())),
        Err(e) => {
            let message = format!("cannot read `{}`: {}", path.display(), plain_io_error(&e));
            return Err(
                DataError::new(message).help("delete the file, then download or copy it again")
            );
        }
        Ok(_) => {}
    }
    match bytes.len().cmp(&expected) {
        std::cmp::Ordering::Equal => Ok(Read8 {
            header,
            bytes,
            sha256: hex(&summed.sum.finalize()),
        }),
        std::cmp::Ordering::Less => Err(short(bytes.len())),
        std::cmp::Ordering::Greater => {
            let message = format!(
                "`{}` is longer than the {expected} bytes of data that its header declares",
                path.display()
            );
            Err(DataError::new(message).help("delete the file, then download or copy it again"))
        }
    }
}

/// Opens a file of any dimensions and type, positioned at its values. A gzipped file may contain fewer or more values
/// than its header says.
pub fn open_any(path: &Path) -> Result<(Header, Box<dyn Read>), DataError> {
    let mut reader = open(path)?;
    let mut magic = [0; 4];
    let filled = fill(path, &mut reader, &mut magic)?;
    let kind = Type::by_code(magic[2]).filter(|_| magic[..2] == [0; 2] && magic[3] > 0);
    let Some((values, size)) = kind.filter(|_| filled == 4) else {
        let message = match filled {
            0 => format!("`{}` is empty", path.display()),
            _ => format!(
                "`{}` is not an IDX file: it begins with {:02x?}",
                path.display(),
                &magic[..filled]
            ),
        };
        return Err(DataError::new(message)
            .help("IDX files begin with 00 00, a type such as 08, and the number of dimensions"));
    };
    let mut bytes = vec![0; 4 * usize::from(magic[3])];
    if fill(path, &mut reader, &mut bytes)? < bytes.len() {
        return Err(ends_in_header(path));
    }
    let header = Header {
        sizes: sizes(&bytes),
        values,
    };
    let is_plain = path.extension().is_none_or(|e| e != "gz");
    let promised = header
        .sizes
        .iter()
        .try_fold(size, |all, size| all.checked_mul(*size));
    let found = disk::metadata(path).map_or(0, |file| file.len()) as usize;
    let found = found.saturating_sub(4 + bytes.len());
    if promised.is_none() || is_plain && promised != Some(found) {
        let promised = promised.map_or("more".to_owned(), |bytes| bytes.to_string());
        let message = format!(
            "`{}` is damaged: its header declares {promised} bytes of data, found {found}",
            path.display()
        );
        return Err(DataError::new(message).help("delete the file, then download or copy it again"));
    }
    Ok((header, reader))
}

fn sizes(bytes: &[u8]) -> Vec<usize> {
    let sizes = bytes.chunks_exact(4);
    let sizes = sizes.map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize);
    sizes.collect()
}

fn ends_in_header(path: &Path) -> DataError {
    let message = format!(
        "`{}` is truncated: it ends within its header",
        path.display()
    );
    DataError::new(message).help("delete the file, then download or copy it again")
}

fn open(path: &Path) -> Result<Box<dyn Read>, DataError> {
    let unreadable = |e: std::io::Error| {
        DataError::new(format!(
            "cannot read `{}`: {}",
            path.display(),
            plain_io_error(&e)
        ))
        .help("check that the file exists and that you have permission to read it")
    };
    let reader = BufReader::with_capacity(1 << 16, plain_file::open(path).map_err(unreadable)?);
    if path.extension().is_some_and(|e| e == "gz") {
        Ok(Box::new(Bounded::new(
            flate2::bufread::GzDecoder::new(reader),
            path,
        )))
    } else {
        Ok(Box::new(reader))
    }
}

fn header_of(path: &Path, num_dims: u8, reader: &mut dyn Read) -> Result<Header, DataError> {
    let mut bytes = vec![0; 4 + 4 * num_dims as usize];
    let filled = fill(path, reader, &mut bytes)?;
    let magic = [0, 0, 8, num_dims];
    if filled >= 4 && bytes[..4] != magic {
        let message = format!(
            "`{}` is not an IDX file of {} dimensions: it begins with {:02x?}, expected {magic:02x?}",
            path.display(),
            num_dims,
            &bytes[..4]
        );
        return Err(DataError::new(message)
            .help("images have 3 dimensions and labels have 1: is this the right file?"));
    }
    if filled < bytes.len() {
        return Err(ends_in_header(path));
    }
    Ok(Header {
        sizes: sizes(&bytes[4..]),
        values: Type::UnsignedByte,
    })
}

/// Reads bytes until a buffer is full or the file ends; returns how many there were.
fn fill(path: &Path, reader: &mut dyn Read, bytes: &mut [u8]) -> Result<usize, DataError> {
    let mut filled = 0;
    while filled < bytes.len() {
        match reader.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => break,
            Err(e) => {
                let message = format!(
                    "`{}` cannot be decompressed: {}",
                    path.display(),
                    plain_io_error(&e)
                );
                return Err(
                    DataError::new(message).help("delete the file, then download or copy it again")
                );
            }
        }
    }
    Ok(filled)
}
