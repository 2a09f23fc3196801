//! One image or mask: from a file to rows of bytes, or to an error.

use std::error::Error;
use std::io::{Cursor, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use image::imageops::{self, FilterType};
use image::metadata::Orientation;
use image::{
    DynamicImage, GrayImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, RgbImage,
};

use super::png;
use crate::diagnostic::Reason;
use crate::disk;
use crate::show::plain_io_error;
use crate::spec::data::Channels;
use crate::spec::plain_file;

/// The maximum number of pixels of an image: a file of a few bytes can claim to contain billions.
pub const MAX_PIXELS: usize = 64_000_000;
/// The maximum size of a file in bytes.
const MAX_FILE: u64 = 1 << 29;
/// The maximum number of bytes that a decoder may allocate: 8 per pixel.
const MAX_MEMORY: u64 = 8 * MAX_PIXELS as u64;

/// Rows of bytes, one plane per channel.
#[derive(Debug, PartialEq)]
pub struct Picture {
    /// Height and width.
    pub size: [usize; 2],
    /// The planes, one after the other.
    pub pixels: Vec<u8>,
}

/// Bytes of a pixel.
pub fn num_channels(channels: Channels) -> usize {
    match channels {
        Channels::Rgb => 3,
        Channels::Gray => 1,
    }
}

/// Reads an image. Its EXIF rotation is applied, 16-bit values are reduced to 8, and transparency is composited over
/// black.
pub fn picture(path: &Path, channels: Channels) -> Result<Picture, Reason> {
    let bytes = contents(path)?;
    let mut image = guarded(&bytes)?;
    if image.color().has_alpha() {
        let mut rgba = image.into_rgba8();
        for pixel in rgba.pixels_mut() {
            let [rest @ .., alpha] = &mut pixel.0;
            for value in rest {
                *value = ((u16::from(*value) * u16::from(*alpha) + 127) / 255) as u8;
            }
        }
        image = DynamicImage::ImageRgba8(rgba);
    }
    let size = [image.height() as usize, image.width() as usize];
    let pixels = match channels {
        Channels::Gray => image.into_luma8().into_raw(),
        Channels::Rgb => planes(image.into_rgb8().into_raw()),
    };
    Ok(Picture { size, pixels })
}

/// Reads a mask: its gray values, or its palette indices.
pub fn mask(path: &Path) -> Result<Picture, Reason> {
    let bytes = contents(path)?;
    if image::guess_format(&bytes).is_ok_and(|format| format == ImageFormat::Jpeg) {
        return Err(
            "is a jpeg, whose compression changes values and therefore classes; save masks as png"
                .into(),
        );
    }
    let gray = png::palette_as_gray(&bytes);
    let image = guarded(gray.as_deref().unwrap_or(&bytes))?;
    let size = [image.height() as usize, image.width() as usize];
    let in_colours = || {
        Reason::from(
            "is in color, but the value of a pixel must be its class: save it as grayscale or with a palette",
        )
    };
    let pixels = match image {
        DynamicImage::ImageLuma8(gray) => {
            // Fewer than 8 bits were spread over 0 to 255.
            let step = png::step(&bytes);
            gray.into_raw()
                .into_iter()
                .map(|value| value / step)
                .collect()
        }
        DynamicImage::ImageLuma16(gray) => gray
            .into_raw()
            .into_iter()
            .map(u8::try_from)
            .collect::<Result<Vec<u8>, _>>()
            .map_err(|_| {
                "has values above 255, but at most 255 classes are supported".to_owned()
            })?,
        DynamicImage::ImageRgb8(rgb) => {
            let shade = |pixel: &image::Rgb<u8>| match pixel.0 {
                [red, green, blue] if red == green && green == blue => Ok(red),
                _ => Err(in_colours()),
            };
            rgb.pixels().map(shade).collect::<Result<Vec<u8>, _>>()?
        }
        image if image.color().has_alpha() => {
            return Err("has transparent pixels; save it without transparency".into());
        }
        _ => return Err(in_colours()),
    };
    Ok(Picture { size, pixels })
}

/// From red, green and blue of each pixel to one plane each.
fn planes(pixels: Vec<u8>) -> Vec<u8> {
    let mut planes = Vec::with_capacity(pixels.len());
    for channel in 0..3 {
        planes.extend(pixels.iter().skip(channel).step_by(3));
    }
    planes
}

impl Picture {
    /// Resized by linear interpolation, over all pixels that fall into one.
    pub fn resized(self, size: [usize; 2], channels: Channels) -> Self {
        if self.size == size {
            return self;
        }
        let ([height, width], [new_height, new_width]) = (self.size, size);
        let (old, new) = (
            (width as u32, height as u32),
            (new_width as u32, new_height as u32),
        );
        let pixels = match channels {
            Channels::Gray => GrayImage::from_raw(old.0, old.1, self.pixels).map(|image| {
                imageops::resize(&image, new.0, new.1, FilterType::Triangle).into_raw()
            }),
            Channels::Rgb => {
                let len = height * width;
                let pixel = |at| [0, 1, 2].map(|channel| self.pixels[channel * len + at]);
                let pixels = (0..len).flat_map(pixel).collect();
                RgbImage::from_raw(old.0, old.1, pixels).map(|image| {
                    planes(imageops::resize(&image, new.0, new.1, FilterType::Triangle).into_raw())
                })
            }
        };
        Self {
            size,
            // Never empty: there are as many pixels as the size says.
            pixels: pixels.unwrap_or_default(),
        }
    }

    /// Resized to the nearest pixel, so that no value is new. One channel.
    pub fn picked(self, size: [usize; 2]) -> Self {
        if self.size == size {
            return self;
        }
        let ([height, width], [new_height, new_width]) = (self.size, size);
        let nearest = |at: usize, new: usize, old: usize| (2 * at + 1) * old / (2 * new);
        let mut pixels = Vec::with_capacity(new_height * new_width);
        for row in 0..new_height {
            let row = &self.pixels[nearest(row, new_height, height) * width..][..width];
            pixels.extend((0..new_width).map(|column| row[nearest(column, new_width, width)]));
        }
        Self { size, pixels }
    }
}

/// The bytes of a file, if it can be an image at all.
fn contents(path: &Path) -> Result<Vec<u8>, Reason> {
    let unreadable = |e: std::io::Error| format!("cannot be read: {}", plain_io_error(&e));
    let metadata = disk::metadata(path).map_err(unreadable)?;
    match metadata.len() {
        _ if !metadata.is_file() => Err("is not a regular file".into()),
        0 => Err("is empty".into()),
        len if len > MAX_FILE => Err(Reason(format!("has {len} bytes; the limit is 512 MiB"))),
        _ => plain_file::read(path, MAX_FILE)
            .map_err(unreadable)?
            .ok_or_else(|| "is larger than 512 MiB, the limit".into()),
    }
}

/// Decodes; a decoder that panics has found a damaged file.
pub fn guarded(bytes: &[u8]) -> Result<DynamicImage, Reason> {
    catch_unwind(AssertUnwindSafe(|| decode(bytes)))
        .unwrap_or_else(|_| Err("is damaged: the decoder failed".into()))
}

/// Decodes by content, whatever the file name says.
fn decode(bytes: &[u8]) -> Result<DynamicImage, Reason> {
    let format = match image::guess_format(bytes) {
        Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg)) => format,
        Ok(other) => {
            let name = other.extensions_str().first().copied().unwrap_or("image");
            return Err(Reason(format!(
                "is a {name} by its content, not a png or jpeg"
            )));
        }
        Err(_) => return Err("is not a png or jpeg by its content".into()),
    };
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_MEMORY);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|e| plain(&e))?;
    let (width, height) = decoder.dimensions();
    match u64::from(width) * u64::from(height) {
        0 => return Err("has no pixels".into()),
        num if num > MAX_PIXELS as u64 => {
            return Err(Reason(format!(
                "has {height} x {width} pixels; the limit is 64 million"
            )));
        }
        _ => {}
    }
    // The decoder fills missing parts with gray.
    if format == ImageFormat::Jpeg && !jpeg_has_an_end(bytes) {
        return Err("is damaged: it ends prematurely".into());
    }
    let turn = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder).map_err(|e| plain(&e))?;
    image.apply_orientation(turn);
    Ok(image)
}

/// Walks the markers, since embedded previews have end markers too.
fn jpeg_has_an_end(bytes: &[u8]) -> bool {
    let mut at = 2;
    loop {
        let Some(rest) = bytes.get(at..) else {
            return false;
        };
        let Some(skipped) = rest.iter().position(|byte| *byte == 0xff) else {
            return false;
        };
        at += skipped;
        match bytes.get(at + 1..).unwrap_or_default() {
            [] => return false,
            [0xff, ..] => at += 1,
            [0xd9, ..] => return true,
            // Data, and markers without a length.
            [0x00 | 0x01 | 0xd0..=0xd8, ..] => at += 2,
            [_, high, low, ..] => at += 2 + usize::from(u16::from_be_bytes([*high, *low])),
            _ => return false,
        }
    }
}

/// The message of a decoder, reworded for the owner of the file.
fn plain(error: &ImageError) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    if let ImageError::Limits(_) = error {
        return "needs more memory than an image of 64 million pixels".into();
    }
    let is_end = cause
        .downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == ErrorKind::UnexpectedEof);
    let text = cause.to_string();
    let text = text.lines().next().unwrap_or_default().trim();
    let is_end = is_end
        || ["nexpected end of", "Not enough bytes"]
            .iter()
            .any(|words| text.contains(words));
    if is_end {
        "is damaged: it ends prematurely".into()
    } else {
        format!(
            "is damaged: the decoder reports \"{}\"",
            text.trim_end_matches('.')
        )
    }
}
