//! Normalisation: spellings of one value made alike before it is hashed, where the user asks for it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use icu_casemap::CaseMapper;
use phonenumber::Mode;
use phonenumber::country::Id as Country;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::error::{Error, Result};

/// Version of Unicode by which texts are composed (`nfc`); case is folded by the same or the next one.
pub const UNICODE: (u8, u8, u8) = unicode_normalization::UNICODE_VERSION;

/// One step. A value that is no UTF-8 passes all of them as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Normal {
    /// White space at both ends goes (Unicode's `White_Space`).
    Trim,
    /// Canonical composition (UAX #15).
    Nfc,
    /// Full case folding (Unicode, `CaseFolding.txt`, C and F), independent of any language.
    Lower,
    /// A mailbox: trimmed, composed, folded, without `mailto:`.
    Email,
    /// A telephone number in E.164, read as in a country; or, if asked for, left as text where it is none.
    Phone(Box<Phone>),
    /// ASCII digits alone.
    Digits,
    /// Letters and digits alone (Unicode).
    Alnum,
}

/// How a telephone number is read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Phone {
    country: Country,
    /// What cannot be read passes as text.
    lenient: bool,
}

/// Steps in their order. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normalisation(Vec<Normal>);

impl Normalisation {
    /// Parses steps as a policy names them: `trim`, `nfc`, `lower`, `email`, `phone:FR`, `phone:FR?`, `digits`, `alnum`.
    ///
    /// # Errors
    /// A name that no step has, or a country that is none.
    ///
    /// ```
    /// use hmask::mask::Normalisation;
    ///
    /// let steps = Normalisation::parse(&["trim", "nfc", "lower"])?;
    /// assert_eq!(steps.apply(" STRASSE\u{301} ".as_bytes()).unwrap(), "strassé".as_bytes());
    /// # Ok::<(), hmask::Error>(())
    /// ```
    pub fn parse<S: AsRef<str>>(names: &[S]) -> Result<Self> {
        names.iter().map(|name| name.as_ref().parse()).collect::<Result<_>>().map(Self)
    }

    /// The steps as a policy names them.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// Whether values stay as they are.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The value in its normal form; none where a step cannot read it.
    pub fn apply<'v>(&self, value: &'v [u8]) -> Option<Cow<'v, [u8]>> {
        let Ok(text) = std::str::from_utf8(value) else { return Some(value.into()) };
        let mut text = Cow::Borrowed(text);
        for step in &self.0 {
            if let Some(changed) = step.apply(&text)? {
                text = Cow::Owned(changed);
            }
        }
        Some(match text {
            Cow::Borrowed(text) => text.as_bytes().into(),
            Cow::Owned(text) => text.into_bytes().into(),
        })
    }
}

impl Normal {
    /// The changed text, or nothing where it stays; none at all where it cannot be read.
    #[expect(clippy::option_option, reason = "no change and no reading are two things")]
    fn apply(&self, text: &str) -> Option<Option<String>> {
        let changed = |new: &str| (new != text).then(|| new.to_owned());
        Some(match self {
            Self::Trim => changed(text.trim()),
            Self::Nfc => (!is_nfc(text)).then(|| text.nfc().collect()),
            Self::Lower => changed(&CaseMapper::new().fold_string(text)),
            Self::Email => changed(&email(text)),
            Self::Phone(phone) => match phone.e164(text) {
                Some(number) => changed(&number),
                None if phone.lenient => None,
                None => return None,
            },
            Self::Digits => changed(&text.chars().filter(char::is_ascii_digit).collect::<String>()),
            Self::Alnum => changed(&text.chars().filter(|c| c.is_alphanumeric()).collect::<String>()),
        })
    }
}

impl Phone {
    /// The number in E.164, where it is a possible one of its country.
    fn e164(&self, text: &str) -> Option<String> {
        let number = phonenumber::parse(Some(self.country), text.trim()).ok()?;
        phonenumber::is_valid(&number).then(|| number.format().mode(Mode::E164).to_string())
    }
}

/// RFC 5321 lets the local part tell case apart; no provider of any size does.
fn email(text: &str) -> String {
    let composed: String = text.trim().nfc().collect();
    let folded = CaseMapper::new().fold_string(&composed);
    let mailbox = folded.strip_prefix("mailto:").unwrap_or(&folded);
    // As in `Zoé Lefèvre <zoe@example.fr>`.
    let inner = mailbox.strip_suffix('>').and_then(|m| m.rsplit_once('<')).map_or(mailbox, |(_, inner)| inner);
    inner.trim().to_owned()
}

impl FromStr for Normal {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name {
            "trim" => Self::Trim,
            "nfc" => Self::Nfc,
            "lower" => Self::Lower,
            "email" => Self::Email,
            "digits" => Self::Digits,
            "alnum" => Self::Alnum,
            other => {
                let country = other.strip_prefix("phone:").ok_or_else(|| {
                    Error::usage(format!("no normalisation is called {other:?}"))
                        .hint("trim, nfc, lower, email, phone:FR, digits, alnum")
                })?;
                let (country, lenient) = country.strip_suffix('?').map_or((country, false), |c| (c, true));
                let unknown = |_| Error::usage(format!("{country:?} is no country")).hint("phone:FR");
                Self::Phone(Box::new(Phone { country: country.parse().map_err(unknown)?, lenient }))
            }
        })
    }
}

impl fmt::Display for Normal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trim => "trim",
            Self::Nfc => "nfc",
            Self::Lower => "lower",
            Self::Email => "email",
            Self::Digits => "digits",
            Self::Alnum => "alnum",
            Self::Phone(phone) => {
                return write!(f, "phone:{:?}{}", phone.country, if phone.lenient { "?" } else { "" });
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(steps: &str, value: &str) -> Option<String> {
        let steps: Vec<&str> = steps.split(',').collect();
        let normal = Normalisation::parse(&steps).unwrap();
        assert_eq!(normal.names(), steps);
        normal.apply(value.as_bytes()).map(|v| String::from_utf8(v.into_owned()).unwrap())
    }

    #[test]
    fn vectors_of_the_specification() {
        let text = include_str!("../../docs/spec.md");
        let table = text.split_once("<!-- normalisation -->").unwrap().1.split_once("<!-- end -->").unwrap().0;
        let mut seen = 0;
        for line in table.lines().filter(|l| l.starts_with("| `")) {
            let cells: Vec<String> = line
                .trim_matches('|')
                .split('|')
                .map(|c| c.trim().trim_matches('`').replace("\\u0301", "\u{301}").replace('␣', " "))
                .collect();
            let [steps, value, want] = &cells[..] else { panic!("{line}") };
            let want = if want == "error" { None } else { Some(want.as_str()) };
            assert_eq!(normal(steps, value).as_deref(), want, "{line}");
            seen += 1;
        }
        assert_eq!(seen, 22, "the table of the specification has moved");
    }

    #[test]
    fn what_is_no_text_passes_and_wrong_names_do_not() {
        let normal = Normalisation::parse(&["lower"]).unwrap();
        assert_eq!(normal.apply(b"\xffA").unwrap(), &b"\xffA"[..]);
        for bad in ["upper", "phone", "phone:", "phone:XX", ""] {
            assert!(Normalisation::parse(&[bad]).unwrap_err().is_usage(), "{bad}");
        }
    }

    #[test]
    fn steps_are_idempotent() {
        for steps in ["trim", "nfc", "lower", "email", "phone:FR", "digits", "alnum"] {
            for value in [" Zoé.Lefèvre@Example.FR ", "+33 6 12 34 56 78", "STRASSE ẞ İ ﬁ", "a\u{301}1"] {
                if let Some(once) = normal(steps, value) {
                    assert_eq!(normal(steps, &once).as_deref(), Some(once.as_str()), "{steps} {value}");
                }
            }
        }
    }
}
