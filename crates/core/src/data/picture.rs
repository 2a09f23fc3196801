//! Images as PNGs and data URLs.

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};

/// An image to show.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The caption.
    pub caption: String,
    /// Channels, height and width. One channel is shown as gray, three as colors; of others, only the first.
    pub shape: [usize; 3],
    /// The channels, one after the other.
    pub pixels: Vec<u8>,
    /// A class for each pixel; -1 for an ignored one.
    pub mask: Option<Vec<i32>>,
}

/// The image as a PNG; `None` if its sizes do not match.
pub fn png(picture: &Picture) -> Option<Vec<u8>> {
    let [channels, height, width] = picture.shape;
    let len = height * width;
    let pixels = &picture.pixels;
    match channels {
        3 => {
            let pixel = |at| [pixels[at], pixels[len + at], pixels[2 * len + at]];
            let pixels: Vec<u8> = (0..len).flat_map(pixel).collect();
            encoded(&pixels, [height, width], ExtendedColorType::Rgb8)
        }
        _ => encoded(pixels.get(..len)?, [height, width], ExtendedColorType::L8),
    }
}

/// A class for each pixel as a PNG; ignored pixels are transparent.
pub fn png_of_mask(mask: &[i32], size: [usize; 2]) -> Option<Vec<u8>> {
    let colours = mask.iter().flat_map(|class| match class {
        0.. => {
            let [red, green, blue] = class_colour(*class);
            [red, green, blue, 255]
        }
        _ => [0; 4],
    });
    let pixels: Vec<u8> = colours.collect();
    if pixels.len() != 4 * size[0] * size[1] {
        return None;
    }
    encoded(&pixels, size, ExtendedColorType::Rgba8)
}

/// A color for a class: eight that are easy to tell apart, then others by golden-ratio steps around the color wheel.
pub fn class_colour(class: i32) -> [u8; 3] {
    const FIRST: [[u8; 3]; 9] = [
        [40, 40, 48],
        [230, 159, 0],
        [86, 180, 233],
        [0, 158, 115],
        [240, 228, 66],
        [0, 114, 178],
        [213, 94, 0],
        [204, 121, 167],
        [240, 240, 240],
    ];
    if let Some(colour) = FIRST.get(class as usize) {
        return *colour;
    }
    let part = (u64::from(class as u32) * 0x9e37_79b9) as u32;
    // The position on the wheel: one of six sectors, and the position in it.
    let wheel = u64::from(part) * 6;
    let (sector, along) = (wheel >> 32, (wheel as u32 >> 24) as u8);
    match sector {
        0 => [255, along, 40],
        1 => [255 - along, 255, 40],
        2 => [40, 255, along],
        3 => [40, 255 - along, 255],
        4 => [along, 40, 255],
        _ => [255, 40, 255 - along],
    }
}

fn encoded(pixels: &[u8], size: [usize; 2], colours: ExtendedColorType) -> Option<Vec<u8>> {
    let [height, width] = size.map(|side| u32::try_from(side).ok());
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes)
        .write_image(pixels, width?, height?, colours)
        .ok()?;
    Some(bytes)
}

/// A PNG as a data URL.
pub fn data_url(png: &[u8]) -> String {
    format!("data:image/png;base64,{}", base64(png))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() {
                digit as char
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn the_png_of_a_picture_holds_its_pixels() {
        let picture = Picture {
            caption: String::new(),
            shape: [3, 2, 2],
            pixels: (0..12_usize).map(|at| (at * 31) as u8).collect(),
            mask: None,
        };
        let image = image::load_from_memory(&png(&picture).unwrap()).unwrap();
        let pixel = image.into_rgb8().get_pixel(1, 0).0;
        assert_eq!(pixel, [31, 155, 23]);
    }

    #[test]
    fn the_first_classes_have_colours_of_their_own() {
        let mut seen: Vec<[u8; 3]> = (0..40).map(class_colour).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 40);
    }
}
