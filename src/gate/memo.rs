//! What was found of values not long ago, by their hashes: most columns have few values, and a close look costs.

/// What was found, for as long as values come again.
pub(super) struct Memo<T> {
    places: Vec<(u64, T)>,
    tries: u64,
    hits: u64,
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self { places: Vec::new(), tries: 0, hits: 0 }
    }
}

impl<T: Copy + Default> Memo<T> {
    /// Places for values.
    const SIZE: usize = 512;
    /// Values after which it is known whether they come again.
    const TRIAL: u64 = 256;

    /// Whether values have turned out to come seldom again: remembering them would be for nothing.
    pub(super) fn is_off(&self) -> bool {
        self.tries >= Self::TRIAL && self.hits * 2 < self.tries
    }

    /// What is known of the value of this hash, or what `look` finds.
    pub(super) fn look(&mut self, hash: u64, look: impl FnOnce() -> T) -> T {
        if self.is_off() {
            return look();
        }
        if self.places.is_empty() {
            // No value has the hash 0, as good as.
            self.places = vec![(0, T::default()); Self::SIZE];
        }
        self.tries += 1;
        let place = &mut self.places[(hash >> 32) as usize % Self::SIZE];
        if place.0 == hash && hash != 0 {
            self.hits += 1;
        } else {
            *place = (hash, look());
        }
        place.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_looked_at_once_and_many_are_not_remembered() {
        let (mut looks, mut memo) = (0, Memo::default());
        for i in 0..10_000u64 {
            let value = i % 7;
            let seen = memo.look((value + 1) << 33, || {
                looks += 1;
                value
            });
            assert_eq!(seen, value);
        }
        assert_eq!(looks, 7);
        let mut memo = Memo::<u64>::default();
        (1..=10_000u64).for_each(|i| assert_eq!(memo.look(i << 32, || i), i));
        assert!(memo.is_off());
    }
}
