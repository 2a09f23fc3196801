//! Fixed sets of names.

/// A fixed set of names, in the order in which messages and schemas show them.
pub trait Choice: Copy + PartialEq + 'static {
    /// Every value with its name in the file and its meaning.
    const ALL: &'static [(Self, &'static str, &'static str)];

    /// The name in the file.
    fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(value, _, _)| *value == self);
        found.map_or("", |(_, name, _)| name)
    }
}

/// The types of a table with a `type` key: a fixed set, or one that a program can add to.
pub trait Types: Copy + PartialEq + 'static {
    /// Every type with its name in the file and its meaning.
    fn all() -> Vec<(Self, &'static str, &'static str)>;
}

impl<T: Choice> Types for T {
    fn all() -> Vec<(Self, &'static str, &'static str)> {
        T::ALL.to_vec()
    }
}

/// Declares a fixed set of names: `Variant "name" "meaning",` for each. After `+`, a variant for names that are not
/// fixed may follow, with the type that has them.
macro_rules! choices {
    ($(#[$meta:meta])* $vis:vis enum $choice:ident {
        $($(#[$mark:meta])* $variant:ident $name:literal $doc:literal,)+
        $(+ $more:ident($named:ty) $more_doc:literal)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        // The texts are messages too, and contain shapes such as [hidden].
        #[allow(rustdoc::broken_intra_doc_links)]
        $vis enum $choice {
            $($(#[$mark])* #[doc = $doc] $variant,)+
            $(#[doc = $more_doc] $more($named),)?
        }

        impl $crate::spec::section::Choice for $choice {
            const ALL: &'static [(Self, &'static str, &'static str)] =
                &[$(($choice::$variant, $name, $doc),)+];

            fn name(self) -> &'static str {
                match self {
                    $($choice::$variant => $name,)+
                    $($choice::$more(named) => <$named>::name(named),)?
                }
            }
        }
    };
}

pub(in crate::spec) use choices;

/// The value of a name.
pub fn by_name<T: Choice>(name: &str) -> Option<T> {
    let found = T::ALL.iter().find(|(_, n, _)| *n == name);
    found.map(|(value, _, _)| *value)
}
