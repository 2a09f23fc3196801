//! Folders created here, valid and damaged.

mod made;

#[cfg(unix)]
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use image::{ExtendedColorType, ImageFormat};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::{decode, png, read};
use crate::data::DataError;
use crate::data::records::{ColumnKind, Records, Writer};
use crate::diagnostic::Reason;
use crate::spec::data::{Channels, FilesSpec, Format, OnBadItem};
use made::{Folder, chunk, encoded, gray, jpeg, noise, packed, rgb};

fn records(files: &FilesSpec) -> Result<Records, DataError> {
    let mut writer = Writer::in_memory();
    read(files, &mut writer, &|_, _| {})?;
    Ok(writer.into_records())
}

/// The classes of a mask.
fn classes(records: &Records, item: usize) -> Vec<i32> {
    let mut classes = Vec::new();
    records.numbers(item, 1, |class| classes.push(class as i32));
    classes
}

#[test]
fn folders_are_classes_in_the_order_of_their_names() {
    let folder = Folder::new();
    folder
        .write("train/cat/b.png", gray(&[5, 6]))
        .write("train/cat/a/z.PNG", gray(&[3, 4]))
        .write("train/ant/1.png", gray(&[1, 2]))
        .write("train/ant/.2.png", "hidden")
        .write("train/.hidden/2.png", "hidden")
        .write("train/ant/readme.txt", "a text")
        .write("train/notes.csv", "a text")
        .write("test/cat/9.png", gray(&[9, 9]));
    let mut files = folder.files(Channels::Gray);
    files.test_path = vec![folder.path("test")];
    let seen = Mutex::new(Vec::new());
    let mut writer = Writer::in_memory();
    read(&files, &mut writer, &|done, total| {
        seen.lock().unwrap().push((done, total));
    })
    .unwrap();
    let records = writer.into_records();
    assert_eq!(records.header.parts, [3, 0, 1]);
    let [image, class] = records.columns() else {
        panic!("{:?}", records.columns());
    };
    assert_eq!(
        (image.name.as_str(), &image.shape[..]),
        ("image", &[1, 1, 2][..])
    );
    assert_eq!((class.name.as_str(), class.shape.len()), ("class", 0));
    let names = ["ant", "cat"].map(str::to_owned).to_vec();
    assert_eq!(class.kind, ColumnKind::Categories { names });
    let pixels: Vec<&[u8]> = (0..4).map(|item| records.bytes(item, 0)).collect();
    assert_eq!(pixels, [[1, 2], [3, 4], [5, 6], [9, 9]]);
    let classes: Vec<_> = (0..4).map(|item| records.category(item, 1)).collect();
    assert_eq!(classes, [Some(0), Some(1), Some(1), Some(1)]);
    assert_eq!(seen.lock().unwrap().first(), Some(&(0, 4)));
    assert_eq!(seen.lock().unwrap().last(), Some(&(4, 4)));
}

#[test]
fn pictures_of_all_kinds_become_planes_of_bytes() {
    let folder = Folder::new();
    let at = |name: &str| Path::new(&folder.path(name)).to_owned();
    let planes = |name: &str| decode::picture(&at(name), Channels::Rgb).unwrap().pixels;
    folder.write("a.png", rgb(&[1, 2, 3, 4, 5, 6], 2));
    assert_eq!(planes("a.png"), [1, 4, 2, 5, 3, 6]);
    // Transparency becomes black.
    let rgba = [200, 100, 50, 255, 200, 100, 50, 51];
    folder.write("b.png", encoded(&rgba, 2, ExtendedColorType::Rgba8));
    assert_eq!(planes("b.png"), [200, 40, 100, 20, 50, 10]);
    let wide: Vec<u8> = [0u16, 257 * 9, 65535, 128]
        .into_iter()
        .flat_map(u16::to_ne_bytes)
        .collect();
    folder.write("c.png", encoded(&wide, 2, ExtendedColorType::L16));
    assert_eq!(planes("c.png"), [[0, 9, 255, 0]; 3].concat());
    // The content decides, not the name.
    folder.write("d.jpg", gray(&[7, 8]));
    assert_eq!(planes("d.jpg"), [[7, 8]; 3].concat());
    folder.write("e.png", jpeg(&noise(16, 8)));
    let picture = decode::picture(&at("e.png"), Channels::Gray).unwrap();
    assert_eq!((picture.size, picture.pixels.len()), ([8, 16], 128));
    // Green appears brighter than blue.
    folder.write("f.png", rgb(&[0, 255, 0, 0, 0, 255], 2));
    let shades = decode::picture(&at("f.png"), Channels::Gray)
        .unwrap()
        .pixels;
    assert!(shades[0] > 150 && shades[1] < 40, "{shades:?}");
}

#[test]
fn a_turn_that_the_camera_noted_is_applied() {
    let folder = Folder::new();
    // TIFF with one entry: orientation (0x0112), a short, once, 6: turned clockwise.
    let tiff = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let mut bytes = rgb(&[10; 18], 2);
    bytes.splice(33..33, chunk(b"eXIf", tiff));
    folder.write("a.png", bytes);
    let path = folder.path("a.png");
    let picture = decode::picture(Path::new(&path), Channels::Gray).unwrap();
    assert_eq!(picture.size, [2, 3]);
}

#[test]
fn pictures_are_brought_to_one_size() {
    let folder = Folder::new();
    folder
        .write("train/a/1.png", gray(&[0, 100, 0, 100]))
        .write("train/b/1.png", gray(&[40, 40, 80, 80, 40, 40, 80, 80]));
    let mut files = folder.files(Channels::Gray);
    let Format::ImageFolder { size, .. } = &mut files.format else {
        panic!("a folder of images");
    };
    *size = Some([2, 4]);
    let records = records(&files).unwrap();
    assert_eq!(records.columns()[0].shape, [1, 2, 4]);
    assert_eq!(records.bytes(0, 0), [0, 25, 75, 100, 0, 25, 75, 100]);
    assert_eq!(records.bytes(1, 0)[..4], [57; 4]);
}

#[test]
fn masks_are_classes_by_value_or_by_place_in_the_palette() {
    let folder = Folder::new();
    let picture = encoded(&[9; 8], 4, ExtendedColorType::L8);
    let values = [0, 1, 2, 3, 3, 2, 1, 255];
    let wide: Vec<u8> = values
        .iter()
        .flat_map(|value| u16::from(*value).to_ne_bytes())
        .collect();
    let colours: Vec<u8> = values.iter().flat_map(|value| [*value; 3]).collect();
    folder
        .write("train/x/a.png", &picture)
        .write("train/b.jpg", &picture)
        .write("train/c.png", &picture)
        .write("train/d.png", &picture)
        .write("train/e.png", &picture)
        .write("train/f.png", &picture)
        .write("masks/x/a.png", encoded(&values, 4, ExtendedColorType::L8))
        .write(
            "masks/b.PNG",
            packed([&[0b00_01_10_11], &[0b11_10_01_00]], 2, true),
        )
        .write(
            "masks/c.png",
            packed([&[0b00_01_10_11], &[0b11_10_01_00]], 2, false),
        )
        .write(
            "masks/d.png",
            packed([&[0, 1, 2, 3], &[3, 2, 1, 255]], 8, true),
        )
        .write("masks/e.png", encoded(&wide, 4, ExtendedColorType::L16))
        .write("masks/f.png", encoded(&colours, 4, ExtendedColorType::Rgb8));
    let records = records(&folder.files_with_masks()).unwrap();
    assert_eq!(records.columns()[1].name, "mask");
    assert_eq!(records.columns()[1].shape, [2, 4]);
    let few = [0, 1, 2, 3, 3, 2, 1, 0];
    let all = [0, 1, 2, 3, 3, 2, 1, -1];
    let masks: Vec<Vec<i32>> = (0..6).map(|item| classes(&records, item)).collect();
    // b, c, d, e, f, x/a
    assert_eq!(masks, [few, few, all, all, all, all]);
}

#[test]
fn masks_of_black_and_white_are_two_classes() {
    let folder = Folder::new();
    folder
        .write("train/a.png", gray(&[1, 2, 3, 4]))
        .write("train/b.png", gray(&[5, 6, 7, 8]))
        .write("train/masks/a.png", gray(&[0, 0, 0, 0]))
        .write("train/masks/b.png", gray(&[0, 255, 255, 0]));
    let mut files = folder.files_with_masks();
    // A folder of masks may be among the images.
    let mut with_size = |new| {
        if let Format::ImageFolder { masks, size, .. } = &mut files.format {
            masks.path = vec![folder.path("train/masks")];
            *size = new;
        }
        records(&files).unwrap()
    };
    assert_eq!(classes(&with_size(None), 1), [0, 1, 1, 0]);
    let larger = with_size(Some([4, 4]));
    assert_eq!(classes(&larger, 1)[..8], [0, 0, 1, 1, 0, 0, 1, 1]);
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let folder = Folder::new();
    for at in 0..200u8 {
        let class = at % 3;
        folder.write(&format!("train/{class}/{at}.png"), gray(&[at, 255 - at]));
    }
    folder.write("train/1/76.png", "damaged");
    let mut files = folder.files(Channels::Gray);
    files.on_bad_item = OnBadItem::Skip;
    let by = |num| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(num).build();
        let records = pool.unwrap().install(|| records(&files)).unwrap();
        (records.record(0..199).to_vec(), records.header)
    };
    assert_eq!(by(1), by(5));
    let (_, header) = by(2);
    assert_eq!((header.parts, header.skipped.len()), ([199, 0, 0], 1));
    assert!(header.skipped[0].place.ends_with("train/1/76.png`"));
}

/// Every refusal by its text, as a user sees it.
#[test]
fn refusals_say_which_file_and_what_to_do() {
    let mut shown = Vec::new();
    let mut refused = |what: &str, make: &dyn Fn(&Folder) -> FilesSpec| {
        let folder = Folder::new();
        let files = make(&folder);
        let error = records(&files).unwrap_err();
        shown.push(format!("{what}\n  {}", folder.show(&error)));
    };
    let (one, tall) = (gray(&[1, 2]), gray(&[1, 2, 3, 4]));
    let classes = |folder: &Folder| folder.files(Channels::Rgb);
    let two = |folder: &Folder, name: &str, bytes: &[u8]| {
        folder
            .write("train/a/1.png", gray(&[1, 2]))
            .write(name, bytes);
        folder.files(Channels::Rgb)
    };
    refused("no folder", &classes);
    refused("a file", &|folder| {
        of(two(folder, "a", b""), folder.path("a"))
    });
    refused("no classes", &|folder| {
        of(two(folder, "x/readme", b""), folder.path("x"))
    });
    refused("one class", &|folder| two(folder, "train/readme", b""));
    refused("beside classes", &|folder| two(folder, "train/1.jpg", b""));
    refused("an empty class", &|folder| {
        two(folder, "train/b/1.gif", b"")
    });
    refused("a class of valid alone", &|folder| {
        let mut files = two(folder, "train/b/1.png", &one);
        folder.write("valid/c/1.png", &one);
        files.valid_path = vec![folder.path("valid")];
        files
    });
    refused("no valid pictures", &|folder| {
        let mut files = two(folder, "train/b/1.png", &one);
        folder.write("valid/b/1.txt", "");
        files.valid_path = vec![folder.path("valid")];
        files
    });
    refused("another size", &|folder| {
        two(folder, "train/b/1.png", &tall)
    });
    refused("empty", &|folder| two(folder, "train/b/1.png", b""));
    refused("a text", &|folder| two(folder, "train/b/1.png", b"hello"));
    refused("a gif", &|folder| {
        two(folder, "train/b/1.png", b"GIF89a____")
    });
    refused("cut", &|folder| {
        two(folder, "train/b/1.png", &one[..one.len() - 20])
    });
    refused("a wrong sum", &|folder| {
        let mut bytes = one.clone();
        bytes[45] ^= 1;
        two(folder, "train/b/1.png", &bytes)
    });
    refused("a cut jpeg", &|folder| {
        let bytes = jpeg(&noise(16, 16));
        two(folder, "train/b/1.jpg", &bytes[..bytes.len() - 2])
    });
    refused("a jpeg cut in its head", &|folder| {
        two(folder, "train/b/1.jpg", &jpeg(&noise(16, 16))[..100])
    });
    refused("a bomb", &|folder| {
        let header = [
            &100_000u32.to_be_bytes()[..],
            &[0, 0, 128, 0, 8, 0, 0, 0, 0],
        ]
        .concat();
        let bomb = [&one[..8], &chunk(b"IHDR", &header), &one[33..]].concat();
        two(folder, "train/b/1.png", &bomb)
    });
    refused("all skipped", &|folder| {
        folder.write("train/a/1.png", "").write("train/b/1.png", "");
        let mut files = folder.files(Channels::Gray);
        files.on_bad_item = OnBadItem::Skip;
        files
    });
    refused("too large a size", &|folder| {
        let mut files = two(folder, "train/b/1.png", &one);
        if let Format::ImageFolder { size, .. } = &mut files.format {
            *size = Some([100_000, 100_000]);
        }
        files
    });
    let masked = |folder: &Folder, name: &str, bytes: &[u8]| {
        folder
            .write("train/a.png", gray(&[1, 2]))
            .write(name, bytes);
        folder.files_with_masks()
    };
    refused("no masks", &|folder| masked(folder, "masks/readme", b""));
    refused("another mask", &|folder| {
        masked(folder, "masks/b.png", &one)
    });
    refused("two masks", &|folder| {
        folder.write("masks/a.jpg", &one);
        masked(folder, "masks/a.png", &one)
    });
    refused("a larger mask", &|folder| {
        masked(folder, "masks/a.png", &tall)
    });
    refused("a mask in colours", &|folder| {
        masked(folder, "masks/a.png", &rgb(&[1, 2, 3, 4, 5, 6], 2))
    });
    refused("a mask with transparency", &|folder| {
        masked(
            folder,
            "masks/a.png",
            &encoded(&[1; 4], 2, ExtendedColorType::La8),
        )
    });
    refused("a jpeg mask", &|folder| {
        masked(folder, "masks/a.png", &jpeg(&noise(2, 1)))
    });
    refused("a mask above 255", &|folder| {
        masked(
            folder,
            "masks/a.png",
            &encoded(&[1; 4], 2, ExtendedColorType::L16),
        )
    });
    refused("a damaged mask", &|folder| {
        masked(folder, "masks/a.png", &one[..50])
    });
    refused("masks of train alone", &|folder| {
        let mut files = masked(folder, "masks/a.png", &one);
        files.valid_path = vec![folder.path("train")];
        files
    });
    insta::assert_snapshot!(shown.join("\n"));
}

/// The same of another folder.
fn of(files: FilesSpec, path: String) -> FilesSpec {
    FilesSpec {
        path: vec![path],
        ..files
    }
}

#[cfg(unix)]
#[test]
fn links_that_lead_back_are_refused() {
    let folder = Folder::new();
    folder
        .write("train/a/1.png", gray(&[1, 2]))
        .write("train/b/1.png", gray(&[1, 2]));
    let link = folder.path("train/a/back");
    std::os::unix::fs::symlink(folder.path("train"), link).unwrap();
    let error = records(&folder.files(Channels::Gray)).unwrap_err();
    let back = "`DIR/train/a/back/a/back` is a link to a folder that contains it";
    let text = folder.show(&error);
    assert!(
        text.starts_with(back) || text.contains("is a link"),
        "{text}"
    );
    let missing = folder.path("train/b/2.png");
    fs::remove_file(folder.path("train/a/back")).unwrap();
    std::os::unix::fs::symlink(folder.path("nowhere"), missing).unwrap();
    let error = records(&folder.files(Channels::Gray)).unwrap_err();
    let text = folder.show(&error);
    assert!(
        text.contains("2.png` cannot be read: no such file"),
        "{text}"
    );
}

/// Whatever happens to a file, it is an image or it is refused with a message; the decoder does not panic.
#[test]
fn damage_is_refused_in_words() {
    let image = noise(24, 20);
    let mut png = std::io::Cursor::new(Vec::new());
    image.write_to(&mut png, ImageFormat::Png).unwrap();
    let palette = packed([&[0b00_01_10_11], &[0b11_10_01_00]], 2, true);
    let wholes = [png.into_inner(), jpeg(&image), palette];
    let mut num_refused = 0;
    let mut hold = |bytes: &[u8]| {
        let gray = png::palette_as_gray(bytes);
        for bytes in [Some(bytes), gray.as_deref()].into_iter().flatten() {
            if let Err(Reason(reason)) = decode::guarded(bytes) {
                assert!(!reason.contains("the decoder failed"), "{reason}");
                assert!(reason.len() < 200 && !reason.contains('\n'), "{reason}");
                num_refused += 1;
            }
        }
    };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for whole in &wholes {
        for len in 0..whole.len() {
            if len < 200 || len % 7 == 0 || len + 20 > whole.len() {
                hold(&whole[..len]);
            }
        }
        for _ in 0..1500 {
            let mut bytes = whole.clone();
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = rng.random();
            }
            hold(&bytes);
        }
        for _ in 0..100 {
            let mut bytes = whole.clone();
            let (start, len) = (rng.random_range(8..bytes.len()), rng.random_range(1..40));
            let end = (start + len).min(bytes.len());
            if rng.random() {
                drop(bytes.drain(start..end))
            } else {
                bytes[start..end].fill(0xff)
            }
            hold(&bytes);
        }
    }
    assert!(num_refused > 1000, "{num_refused}");
}
