//! Treatments that keep a leaf's type: numbers rounded down, dates moved.

use super::schema::{Meaning, Physical};
use crate::error::{Error, Result};
use crate::mask::Treatment;
use crate::mask::canonical::TimeUnit;

/// What is done to values as they lie in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// Rounded down to a multiple.
    Bucket(u64),
    /// Moved by so many units a day.
    Shift(i64),
}

impl Kept {
    /// How a treatment keeps the type of a leaf; none where it makes a text of it.
    ///
    /// # Errors
    /// A type that the treatment cannot take.
    pub(super) fn of(treatment: &Treatment, physical: Physical, meaning: Meaning) -> Result<Option<Self>> {
        let per_day = |unit: TimeUnit| 86_400 * unit.per_second() as i64;
        match (treatment, meaning) {
            (Treatment::Bucket(step), Meaning::Signed | Meaning::Unsigned | Meaning::Float) => Ok(Some(Self::Bucket(*step))),
            (Treatment::Bucket(step), Meaning::Decimal(scale)) => {
                let step = 10u64.checked_pow(scale as u32).and_then(|one| one.checked_mul(*step));
                match (step, physical) {
                    (Some(step), Physical::Int32 | Physical::Int64 | Physical::Fixed(1..=16)) => Ok(Some(Self::Bucket(step))),
                    _ => Err(Error::unsupported("a decimal in this form cannot be put into buckets")),
                }
            }
            (Treatment::Shift(_), Meaning::Date) => Ok(Some(Self::Shift(1))),
            (Treatment::Shift(_), Meaning::Timestamp(unit, _)) => Ok(Some(Self::Shift(per_day(unit)))),
            (Treatment::Bucket(_) | Treatment::Shift(_), Meaning::Text) => Ok(None),
            (Treatment::Bucket(_) | Treatment::Shift(_), _) => {
                Err(Error::unsupported("the column's type does not fit its treatment"))
            }
            _ => Ok(None),
        }
    }

    /// Appends a value as the file has it, moved by `days` if it is a date; none where the type cannot hold the outcome.
    pub(super) fn apply(self, value: &[u8], days: i32, physical: Physical, meaning: Meaning, out: &mut Vec<u8>) -> Option<()> {
        match (physical, value) {
            (Physical::Float, _) => {
                let Self::Bucket(step) = self else { return None };
                let value = f32::from_le_bytes(value.try_into().ok()?);
                let floor = (f64::from(value) / step as f64).floor() * step as f64;
                out.extend_from_slice(&(floor as f32).to_le_bytes());
            }
            (Physical::Double, _) => {
                let Self::Bucket(step) = self else { return None };
                let value = f64::from_le_bytes(value.try_into().ok()?);
                out.extend_from_slice(&((value / step as f64).floor() * step as f64).to_le_bytes());
            }
            (Physical::Int32, _) => {
                let raw = i32::from_le_bytes(value.try_into().ok()?);
                let wide = if meaning == Meaning::Unsigned { i128::from(raw as u32) } else { i128::from(raw) };
                let new = self.number(wide, days);
                let new = if meaning == Meaning::Unsigned { u32::try_from(new).ok()? as i32 } else { i32::try_from(new).ok()? };
                out.extend_from_slice(&new.to_le_bytes());
            }
            (Physical::Int64, _) => {
                let raw = i64::from_le_bytes(value.try_into().ok()?);
                let wide = if meaning == Meaning::Unsigned { i128::from(raw as u64) } else { i128::from(raw) };
                let new = self.number(wide, days);
                let new = if meaning == Meaning::Unsigned { u64::try_from(new).ok()? as i64 } else { i64::try_from(new).ok()? };
                out.extend_from_slice(&new.to_le_bytes());
            }
            (Physical::Fixed(n), _) => {
                // Big-endian, in two's complement.
                let negative = value.first().is_some_and(|b| b & 0x80 != 0);
                let wide = value.iter().fold(if negative { -1i128 } else { 0 }, |n, b| n << 8 | i128::from(*b));
                let bytes = self.number(wide, days).to_be_bytes();
                let (head, tail) = bytes.split_at(16usize.checked_sub(n)?);
                let fill = if tail.first().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 };
                if head.iter().any(|b| *b != fill) {
                    return None;
                }
                out.extend_from_slice(tail);
            }
            _ => return None,
        }
        Some(())
    }

    fn number(self, value: i128, days: i32) -> i128 {
        match self {
            Self::Bucket(step) => value.div_euclid(i128::from(step)) * i128::from(step),
            Self::Shift(a_day) => value + i128::from(a_day) * i128::from(days),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int32(kept: Kept, value: i32, days: i32, meaning: Meaning) -> Option<i32> {
        let mut out = Vec::new();
        kept.apply(&value.to_le_bytes(), days, Physical::Int32, meaning, &mut out)?;
        Some(i32::from_le_bytes(out.try_into().unwrap()))
    }

    #[test]
    fn numbers_go_down_and_dates_move() {
        assert_eq!(int32(Kept::Bucket(10), 37, 0, Meaning::Signed), Some(30));
        assert_eq!(int32(Kept::Bucket(10), -1, 0, Meaning::Signed), Some(-10));
        assert_eq!(int32(Kept::Bucket(10), -1, 0, Meaning::Unsigned), Some((u32::MAX - u32::MAX % 10) as i32));
        assert_eq!(int32(Kept::Bucket(10), i32::MIN, 0, Meaning::Signed), None);
        assert_eq!(int32(Kept::Shift(1), 100, -3, Meaning::Date), Some(97));
        let mut out = Vec::new();
        Kept::Bucket(5).apply(&12.5f64.to_le_bytes(), 0, Physical::Double, Meaning::Float, &mut out).unwrap();
        assert_eq!(out, 10f64.to_le_bytes());
    }
}
