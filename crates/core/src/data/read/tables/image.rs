//! Images that a column names by their paths in a folder.

use std::path::{Component, Path, PathBuf};

use super::encode::shorten;
use crate::data::DataError;
use crate::data::read::images::decode;
use crate::data::records::{Column, ColumnKind};
use crate::diagnostic::Reason;
use crate::spec::data::{Channels, FilesSpec, Format, ImageSpec, RolesSpec};

/// The images of a column.
#[derive(Debug)]
pub struct Images {
    /// Their folder; none where the rows come from another machine, which must not name files of this one.
    folder: Option<PathBuf>,
    size: [usize; 2],
    channels: Channels,
}

impl Images {
    /// Images in a folder, as a column has them.
    pub fn new(spec: &ImageSpec, folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            size: spec.size,
            channels: spec.channels,
        }
    }

    /// Reads no image by its path any more.
    pub fn forget_folder(&mut self) {
        self.folder = None;
    }

    /// Writes the pixels of the image with a path.
    pub fn read(&self, path: &str, out: &mut [u8]) -> Result<(), Reason> {
        let shown = shorten(path);
        let Some(folder) = &self.folder else {
            return Err(Reason(format!(
                "`{shown}` is a path, but rows without a file contain images themselves: lists of bytes, [channels, height, width]"
            )));
        };
        let mut parts = Path::new(path).components().peekable();
        if parts.peek().is_none() {
            return Err("there is no image".into());
        }
        // Hidden files are not part of the data's digest.
        let is_plain = |part: Component<'_>| match part {
            Component::Normal(name) => !name.to_string_lossy().starts_with('.'),
            part => part == Component::CurDir,
        };
        if !parts.all(is_plain) {
            return Err(Reason(format!(
                "`{shown}` is not a path within the folder of the images, or is hidden"
            )));
        }
        let picture = decode::picture(&folder.join(path), self.channels)
            .map_err(|Reason(reason)| Reason(format!("`{shown}` {reason}")))?;
        out.copy_from_slice(&picture.resized(self.size, self.channels).pixels);
        Ok(())
    }
}

/// A column of such images.
pub fn column(name: String, spec: &ImageSpec) -> Column {
    let [height, width] = spec.size;
    Column {
        name,
        kind: ColumnKind::Bytes,
        shape: vec![decode::num_channels(spec.channels), height, width],
    }
}

/// Refuses columns of images that cannot be read.
pub fn check(files: &FilesSpec) -> Result<(), DataError> {
    for (at, (name, spec)) in images(&files.roles) {
        let is_table = matches!(
            files.format,
            Format::Csv { .. } | Format::JsonLines | Format::Parquet
        );
        let refuse = |key: &str, message: String, help: &str| {
            let error = DataError::new(message).key(format!("data.columns[{at}].{key}"));
            Err(error.help(help))
        };
        let column = &files.roles.columns[at];
        if !is_table {
            let message =
                format!("`image` names files by a column of paths, but `{name}` is an array");
            let help =
                "remove `image`: arrays of shape [items, channels, height, width] are images";
            return refuse("image", message, help);
        }
        if column.kind.is_some() {
            let message = format!("`{name}` has both a `type` and an `image`");
            return refuse("type", message, "remove `type`");
        }
        if files.roles.is_target(&column.name) {
            let message = format!("the target `{name}` cannot be an image");
            let help = "use `type = \"image_folder\"` with `target_path` for images with masks";
            return refuse("image", message, help);
        }
        let [height, width] = spec.size;
        if height.saturating_mul(width) > decode::MAX_PIXELS {
            let message = format!("`size` is {height} x {width} pixels; the limit is 64 million");
            return refuse("image.size", message, "set a smaller `size`");
        }
    }
    Ok(())
}

/// The columns of images, with their positions among those with settings.
fn images(roles: &RolesSpec) -> impl Iterator<Item = (usize, (&str, &ImageSpec))> {
    let columns = roles.columns.iter().enumerate();
    columns.filter_map(|(at, column)| Some((at, (column.name.as_str(), column.image.as_ref()?))))
}
