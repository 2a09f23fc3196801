//! A sheet of images as one self-contained HTML page, without scripts or other files.

use std::fmt::Write as _;

use crate::report::plot::escape;
use runner_core::data::picture::{Picture, class_colour, data_url, png, png_of_mask};

/// The size in screen pixels that small images are enlarged to.
const SIDE: usize = 144;

/// Images that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The heading.
    pub heading: String,
    /// The pictures.
    pub pictures: Vec<Picture>,
}

/// The page. Masks are shown next to their images, and over them when the checkbox is on.
pub fn sheet(title: &str, sections: &[Section]) -> String {
    let title = escape(title);
    let pictures = || sections.iter().flat_map(|section| &section.pictures);
    let has_masks = pictures().any(|picture| picture.mask.is_some());
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    if has_masks {
        page +=
            "<p><label><input type=\"checkbox\" id=\"over\"> overlay masks on images</label></p>\n";
        page += &legend(pictures());
    }
    for section in sections {
        let _ = writeln!(page, "<h2>{}</h2>\n<section>", escape(&section.heading));
        for picture in &section.pictures {
            page += &figure(picture);
        }
        page += "</section>\n";
    }
    page + "</body>\n</html>\n"
}

const STYLE: &str = "\
:root { color-scheme: light dark; font: 14px/1.4 system-ui, sans-serif; }
body { margin: 1.5rem; background: light-dark(#fff, #16181c); color: light-dark(#1b1d21, #e6e6e6); }
h1 { font-size: 1.3rem; font-weight: 600; }
h2 { font-size: 1rem; font-weight: 600; margin: 1.6rem 0 0.6rem; }
section { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-end; }
figure { margin: 0; }
.pair { display: flex; gap: 4px; }
.stack { position: relative; display: block; }
img { display: block; image-rendering: pixelated; background: #000; }
.mask { background: repeating-conic-gradient(#888 0 25%, #bbb 0 50%) 0 0 / 12px 12px; }
.over { position: absolute; inset: 0; background: none; opacity: 0; }
body:has(#over:checked) .over { opacity: 0.55; }
figcaption { margin-top: 0.25rem; overflow-wrap: anywhere; color: light-dark(#444, #bbb); }
.classes span { display: inline-block; margin-right: 1rem; }
.classes i { display: inline-block; width: 1em; height: 1em; margin-right: 0.35em; vertical-align: -0.15em; border: 1px solid light-dark(#0004, #fff4); }
";

/// The colors of the classes that occur.
fn legend<'a>(pictures: impl Iterator<Item = &'a Picture>) -> String {
    let classes = pictures.flat_map(|picture| picture.mask.iter().flatten());
    let mut classes: Vec<i32> = classes.copied().collect();
    classes.sort_unstable();
    classes.dedup();
    let mut html = "<p class=\"classes\">".to_owned();
    for class in classes {
        let _ = match class {
            0.. => {
                let [red, green, blue] = class_colour(class);
                write!(
                    html,
                    "<span><i style=\"background:rgb({red} {green} {blue})\"></i>{class}</span>"
                )
            }
            _ => write!(html, "<span><i class=\"mask\"></i>ignored</span>"),
        };
    }
    html + "</p>\n"
}

fn figure(picture: &Picture) -> String {
    let caption = escape(&picture.caption);
    let [channels, height, width] = picture.shape;
    let len = height * width;
    let is_whole = len > 0
        && picture.pixels.len() == channels * len
        && picture.mask.as_ref().is_none_or(|mask| mask.len() == len);
    let shown = is_whole.then(|| png(picture)).flatten();
    let Some(shown) = shown else {
        return format!("<figure><figcaption>{caption}: no image</figcaption></figure>\n");
    };
    // Whole pixels, so that all of them have the same size.
    let scale = (SIDE / height.max(width)).max(1);
    let image = |bytes: &[u8], class: &str| {
        format!(
            "<img {class}width=\"{}\" height=\"{}\" alt=\"{caption}\" src=\"{}\">",
            width * scale,
            height * scale,
            data_url(bytes)
        )
    };
    let mask = picture.mask.as_ref();
    let mask = mask.and_then(|mask| png_of_mask(mask, [height, width]));
    let mut html = "<figure><div class=\"pair\"><span class=\"stack\">".to_owned();
    html += &image(&shown, "");
    match mask {
        Some(mask) => {
            html += &image(&mask, "class=\"over\" ");
            html += "</span>";
            html += &image(&mask, "class=\"mask\" ");
        }
        None => html += "</span>",
    }
    let more = match channels {
        1 | 3 => String::new(),
        num => format!(" (the first of {num} channels)"),
    };
    let _ = writeln!(
        html,
        "</div><figcaption>{caption}{more}</figcaption></figure>"
    );
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(shape: [usize; 3]) -> Picture {
        let len = shape.iter().product::<usize>();
        Picture {
            caption: "train, <cat> & \"dog\"".into(),
            shape,
            pixels: (0..len).map(|at| (at * 31) as u8).collect(),
            mask: None,
        }
    }

    #[test]
    fn a_sheet_holds_every_picture_and_no_text_as_code() {
        let mut with_mask = picture([1, 4, 6]);
        with_mask.mask = Some((-1..23).collect());
        let mut broken = picture([3, 5, 5]);
        broken.pixels.pop();
        let pictures = vec![
            picture([1, 4, 6]),
            picture([3, 400, 2]),
            picture([5, 2, 2]),
            with_mask,
            broken,
            picture([0, 2, 2]),
            picture([1, 0, 0]),
        ];
        let section = |heading: &str, pictures| Section {
            heading: heading.into(),
            pictures,
        };
        let page = sheet("<digits>", &[section("train & more", pictures.clone())]);
        assert!(page.contains("<h2>train &amp; more</h2>"));
        assert_eq!(page.matches("<figure>").count(), 7);
        assert_eq!(page.matches("data:image/png;base64,iVBORw0KGgo").count(), 6);
        assert_eq!(page.matches(": no image").count(), 3);
        assert!(page.contains("(the first of 5 channels)"));
        assert!(page.contains("<h1>&lt;digits&gt;</h1>"));
        assert!(page.contains("train, &lt;cat&gt; &amp; &quot;dog&quot;"));
        assert!(!page.contains("<cat>") && !page.contains("<script") && !page.contains("http"));
        assert!(page.contains("width=\"144\" height=\"96\""));
        assert!(!sheet("", &[section("", pictures[..1].to_vec())]).contains("checkbox"));
    }
}
