//! Parts that must not compile. Each differs from the first one, which compiles, in a single line.

macro_rules! part {
    ($test:literal, $name:literal, $derive:literal, $settings:literal, $register:literal) => {
        concat!(
            "```",
            $test,
            "\n",
            "use burn_runner::parts::{Kind, Place, SchedulePart, Section};\n",
            "use serde::{Deserialize, Serialize};\n",
            "struct Falling;\n",
            "struct Other;\n",
            $derive,
            "\n",
            "struct Settings { power: f64 }\n",
            "impl SchedulePart for Falling {\n",
            $name,
            "\n",
            "    const DOC: &'static str = \"Falls.\";\n",
            "    type Settings = Settings;\n",
            "    fn settings(section: &mut Section<'_>) -> Settings {\n",
            "        let power = section.field(\"power\", Kind::positive(), \"The power.\");\n",
            "        Settings { power: power.or(1.0) }\n",
            "    }\n",
            "    fn factor(settings: &",
            $settings,
            ", at: Place) -> f64 {\n",
            "        1.0 / (1 + at.step) as f64\n",
            "    }\n",
            "}\n",
            "let _ = burn_runner::Runner::new()",
            $register,
            ";\n",
            "```\n",
        )
    };
}

/// It compiles.
#[doc = part!("", "const NAME: &'static str = \"falling\";", "#[derive(Serialize, Deserialize)]", "Settings", ".schedule::<Falling>()")]
struct Whole;

/// It has no name.
#[doc = part!("compile_fail", "", "#[derive(Serialize, Deserialize)]", "Settings", ".schedule::<Falling>()")]
struct WithoutName;

/// Its name is not a text.
#[doc = part!("compile_fail", "const NAME: u32 = 1;", "#[derive(Serialize, Deserialize)]", "Settings", ".schedule::<Falling>()")]
struct OtherName;

/// Its settings cannot be written to `run.toml`.
#[doc = part!("compile_fail", "const NAME: &'static str = \"falling\";", "#[derive(Deserialize)]", "Settings", ".schedule::<Falling>()")]
struct Unwritten;

/// Its settings cannot be read from `run.toml`.
#[doc = part!("compile_fail", "const NAME: &'static str = \"falling\";", "#[derive(Serialize)]", "Settings", ".schedule::<Falling>()")]
struct Unread;

/// It takes other settings than its own.
#[doc = part!("compile_fail", "const NAME: &'static str = \"falling\";", "#[derive(Serialize, Deserialize)]", "Other", ".schedule::<Falling>()")]
struct OtherSettings;

/// It is registered as a part of another kind.
#[doc = part!("compile_fail", "const NAME: &'static str = \"falling\";", "#[derive(Serialize, Deserialize)]", "Settings", ".metric::<Falling>()")]
struct OtherKind;

/// What is registered is not a part.
#[doc = part!("compile_fail", "const NAME: &'static str = \"falling\";", "#[derive(Serialize, Deserialize)]", "Settings", ".schedule::<Other>()")]
struct NoPart;
