//! Images and folders made for a test.

use std::fs;

use image::codecs::png::PngEncoder;
use image::{DynamicImage, ExtendedColorType, ImageEncoder, ImageFormat};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tempfile::TempDir;

use crate::data::DataError;
use crate::spec::data::{Channels, FilesSpec, Format, Targets};

pub(super) struct Folder(pub(super) TempDir);

impl Folder {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    pub(super) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    pub(super) fn files(&self, channels: Channels) -> FilesSpec {
        let format = Format::ImageFolder {
            masks: Targets::default(),
            size: None,
            channels,
        };
        FilesSpec::of_format(format, vec![self.path("train")])
    }

    pub(super) fn files_with_masks(&self) -> FilesSpec {
        let mut files = self.files(Channels::Gray);
        files.format = Format::ImageFolder {
            masks: Targets {
                path: vec![self.path("masks")],
                ..Targets::default()
            },
            size: None,
            channels: Channels::Gray,
        };
        files
    }

    /// An error's text with the folder's name replaced.
    pub(super) fn show(&self, error: &DataError) -> String {
        let text = error.to_string();
        text.replace(&self.0.path().display().to_string(), "DIR")
    }
}

pub(super) fn encoded(pixels: &[u8], width: usize, colours: ExtendedColorType) -> Vec<u8> {
    let mut bytes = Vec::new();
    let row = width * usize::from(colours.bits_per_pixel()) / 8;
    let height = (pixels.len() / row) as u32;
    PngEncoder::new(&mut bytes)
        .write_image(pixels, width as u32, height, colours)
        .unwrap();
    bytes
}

/// A gray image two pixels wide.
pub(super) fn gray(pixels: &[u8]) -> Vec<u8> {
    encoded(pixels, 2, ExtendedColorType::L8)
}

pub(super) fn rgb(pixels: &[u8], width: usize) -> Vec<u8> {
    encoded(pixels, width, ExtendedColorType::Rgb8)
}

pub(super) fn chunk(name: &[u8], content: &[u8]) -> Vec<u8> {
    let named = [name, content].concat();
    let mut sum = flate2::Crc::new();
    sum.update(&named);
    let len = (content.len() as u32).to_be_bytes();
    [&len[..], &named, &sum.sum().to_be_bytes()].concat()
}

/// An image of 4 x 2 with values of few bits: shades of gray, or palette indices.
pub(super) fn packed(rows: [&[u8]; 2], depth: u8, has_palette: bool) -> Vec<u8> {
    let mut header = [4u32.to_be_bytes(), 2u32.to_be_bytes()].concat();
    header.extend([depth, if has_palette { 3 } else { 0 }, 0, 0, 0]);
    let mut data = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    for row in rows {
        std::io::Write::write_all(&mut data, &[&[0], row].concat()).unwrap();
    }
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.extend(chunk(b"IHDR", &header));
    if has_palette {
        let colours: Vec<u8> = (0..3 * (1u32 << depth)).map(|at| (at * 7) as u8).collect();
        bytes.extend(chunk(b"PLTE", &colours));
        bytes.extend(chunk(b"tRNS", &[0]));
    }
    bytes.extend(chunk(b"IDAT", &data.finish().unwrap()));
    bytes.extend(chunk(b"IEND", &[]));
    bytes
}

pub(super) fn noise(width: u32, height: u32) -> DynamicImage {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let image = image::RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([(x * 5) as u8, (y * 9) as u8, rng.random()])
    });
    DynamicImage::ImageRgb8(image)
}

pub(super) fn jpeg(image: &DynamicImage) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Jpeg).unwrap();
    bytes.into_inner()
}
