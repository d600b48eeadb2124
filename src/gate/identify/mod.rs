//! Identifiers of persons: what a whole cell is, by check digits, dates and shapes, and what a header says of its column.
//!
//! Sources: the rules of each country's registry as checked against `python-stdnum` 2.2, the SWIFT registry of IBANs v101,
//! ISO/IEC 7812-1 (card numbers), ITU-T E.164 and libphonenumber (telephone numbers).

mod cell;
mod checks;
pub mod headers;
mod national;
mod numbers;
mod other;
pub mod phone;
mod placeholder;
mod words;

pub use placeholder::{placeholder, placeholder_if_repeated};

use cell::{Code, LONGEST, plain, trimmed};

/// The kinds, each with its id, its name, the probability of its shape by chance, and whether it identifies a person.
macro_rules! kinds {
    ($($kind:ident $id:literal $name:literal $chance:literal $direct:literal)*) => {
        /// Kinds of identifiers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $(#[doc = $name] $kind,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            const FACTS: &[(&'static str, &'static str, f64, bool)] = &[$(($id, $name, $chance, $direct)),*];
        }
    };
}

kinds! {
    FrNir "fr_nir" "French social security number" 0.0093 true
    FrSiren "fr_siren" "French company number (SIREN)" 0.1 false
    FrSiret "fr_siret" "French establishment number (SIRET)" 0.01 false
    FrTva "fr_tva" "French VAT number" 0.001 false
    FrSpi "fr_spi" "French tax number" 0.0004 true
    DeIdnr "de_idnr" "German tax number" 0.0032 true
    DeRvnr "de_rvnr" "German pension insurance number" 0.011 true
    EsDni "es_dni" "Spanish identity number (DNI)" 0.038 true
    EsNie "es_nie" "Spanish number of a foreigner (NIE)" 0.038 true
    EsNifKlm "es_nif_klm" "Spanish tax number of a person" 0.039 true
    EsCif "es_cif" "Spanish company number" 0.065 false
    ItCf "it_cf" "Italian tax code" 0.011 true
    ItPiva "it_piva" "Italian VAT number" 0.0105 false
    GbNino "gb_nino" "British national insurance number" 0.55 true
    GbNhs "gb_nhs" "British NHS number" 0.091 true
    UsSsn "us_ssn" "US social security number" 0.89 true
    BeNrn "be_nrn" "Belgian national number" 0.0017 true
    NlBsn "nl_bsn" "Dutch citizen service number" 0.091 true
    PlPesel "pl_pesel" "Polish PESEL number" 0.0081 true
    PtNif "pt_nif" "Portuguese tax number" 0.08 true
    SePnr "se_pnr" "Swedish personal number" 0.0071 true
    FiHetu "fi_hetu" "Finnish personal identity code" 0.0011 true
    DkCpr "dk_cpr" "Danish CPR number" 0.032 true
    DkCprMod11 "dk_cpr_mod11" "Danish CPR number with check digit" 0.0028 true
    NoFnr "no_fnr" "Norwegian birth number" 0.000_94 true
    AtSvnr "at_svnr" "Austrian social insurance number" 0.0037 true
    ChAhv "ch_ahv" "Swiss AHV number" 0.1 true
    CzRc "cz_rc" "Czech or Slovak birth number" 0.0071 true
    RoCnp "ro_cnp" "Romanian personal code" 0.0016 true
    BgEgn "bg_egn" "Bulgarian civil number" 0.0086 true
    EeLtIk "ee_lt_ik" "Estonian or Lithuanian personal code" 0.0017 true
    LvPk "lv_pk" "Latvian personal code" 0.0089 true
    HrOib "hr_oib" "Croatian OIB number" 0.1 true
    SiEmso "si_emso" "Slovenian EMŠO or Yugoslav JMBG number" 0.0008 true
    HuTaj "hu_taj" "Hungarian social security number" 0.1 true
    HuAdoazonosito "hu_adoazonosito" "Hungarian tax number" 0.0043 true
    GrAmka "gr_amka" "Greek social security number" 0.0036 true
    GrAfm "gr_afm" "Greek tax number" 0.1 true
    IePpsn "ie_ppsn" "Irish PPS number" 0.038 true
    LuNin "lu_nin" "Luxembourgish identification number" 0.000_01 true
    Iban "iban" "IBAN" 0.000_14 true
    Card "card" "card number" 0.039 true
    Email "email" "e-mail address" 0.0 true
    Phone "phone" "telephone number" 0.65 true
    Ip "ip" "IP address" 0.004 true
    Mac "mac" "hardware address" 0.0 true
    Uuid "uuid" "UUID" 0.0 false
    UrlUser "url_user" "URL with a user" 0.0 true
    Gps "gps" "geographic position" 0.9 false
    Date "date" "date" 0.04 false
    Postcode "postcode" "postcode" 0.95 false
}

impl Kind {
    /// Its id in reports and settings.
    pub fn id(self) -> &'static str {
        Self::FACTS[self as usize].0
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        Self::FACTS[self as usize].1
    }

    /// The probability that a random string of its shape is one: of n cells by chance, this to the power of n.
    pub fn chance(self) -> f64 {
        Self::FACTS[self as usize].2
    }

    /// Whether it identifies a person on its own; dates, places and companies do not, and UUIDs are mostly keys of rows.
    pub fn is_direct(self) -> bool {
        Self::FACTS[self as usize].3
    }
}

/// Characters of a cell that tell what it cannot be.
const AT: u8 = 1;
const COLON: u8 = 2;
const DIGIT: u8 = 4;
const LETTER: u8 = 8;
const DOT: u8 = 16;
/// Dashes, slashes, commas, spaces and the like, and all that is not ASCII.
const MARK: u8 = 32;

static CLASSES: [u8; 256] = {
    let (mut classes, mut b) = ([MARK; 256], 0_u8);
    while b < 128 {
        classes[b as usize] = match b {
            b'@' => AT,
            b':' => COLON,
            b'.' => DOT,
            b if b.is_ascii_digit() => DIGIT,
            b if b.is_ascii_alphabetic() => LETTER,
            _ => MARK,
        };
        b += 1;
    }
    classes
};

/// Whether the whole cell is an identifier of this kind.
pub fn matches(kind: Kind, text: &str) -> bool {
    let text = trimmed(text);
    match kind {
        Kind::Email => return other::email(text),
        Kind::UrlUser => return other::url_user(text),
        _ => {}
    }
    let (mut buffer, mut letters) = ([0; LONGEST], [0; LONGEST]);
    let Some(plain) = plain(text, &mut buffer) else { return false };
    match kind {
        Kind::Phone => phone::looks(plain),
        Kind::Ip => other::ip(plain),
        Kind::Mac => other::mac(plain),
        Kind::Uuid => other::uuid(plain),
        Kind::Gps => other::gps(plain),
        Kind::Date => other::date(plain).is_some(),
        Kind::Postcode => other::postcode(plain, None),
        _ => Code::read(plain, &mut letters).is_some_and(|code| national::is(kind, code)),
    }
}

/// The same for a column of numbers, which have lost the zeros they began with (up to two) and may end in `.0`.
pub fn matches_number(kind: Kind, number: &str) -> bool {
    let text = trimmed(number);
    let digits = text.strip_suffix(".0").unwrap_or(text);
    if digits.is_empty() || digits.len() > 20 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return matches(kind, text);
    }
    let mut padded = [b'0'; 22];
    padded[2..2 + digits.len()].copy_from_slice(digits.as_bytes());
    let mut fits = (0..3).filter_map(|zeros| str::from_utf8(&padded[zeros..2 + digits.len()]).ok());
    // Filler and round numbers are not to become anything by zeros in front.
    matches(kind, digits) || digits.len() > 6 && fits.any(|padded| matches(kind, padded))
}

/// Whether the whole cell is a postcode of this country (two letters), or of any.
pub fn postcode(text: &str, country: Option<&str>) -> bool {
    plain(trimmed(text), &mut [0; LONGEST]).is_some_and(|plain| other::postcode(plain, country))
}

/// Year, month and day of a cell that is a date; of two readings, the day before the month.
pub fn date(text: &str) -> Option<(u32, u32, u32)> {
    other::date(plain(trimmed(text), &mut [0; LONGEST])?)
}

/// Calls `each` for every kind that the whole cell is.
pub fn kinds(text: &str, mut each: impl FnMut(Kind)) {
    let text = trimmed(text);
    let (mut has, mut digits, mut letters, mut dots) = (0, 0, 0, 0);
    for b in text.bytes() {
        let class = CLASSES[usize::from(b)];
        has |= class;
        digits += usize::from(class == DIGIT);
        letters += usize::from(class == LETTER);
        dots += usize::from(class == DOT);
    }
    if has & AT != 0 {
        if other::email(text) {
            each(Kind::Email);
        }
        if has & COLON != 0 && other::url_user(text) {
            each(Kind::UrlUser);
        }
    }
    // What has few digits can only be one of these; words, amounts and short numbers end here.
    let both = digits + letters;
    let has_address = has & COLON != 0 || dots == 3 && letters == 0 || both == 12 || both >= 32;
    let has_postcode = has & (AT | COLON | DOT) == 0 && digits > 1 && (4..10).contains(&both);
    let has_more = digits > 5 || both == 16 && digits > 0;
    if !(has_address || has_postcode || has_more) || text.len() > 2 * LONGEST {
        return;
    }
    let mut buffer = [0; LONGEST];
    let Some(plain) = plain(text, &mut buffer) else { return };
    let mut test = |is: bool, kind| {
        if is {
            each(kind);
        }
    };
    test(has_postcode && other::postcode(plain, None), Kind::Postcode);
    if has_address {
        test(other::ip(plain), Kind::Ip);
        test(both == 12 && other::mac(plain), Kind::Mac);
        test(both >= 32 && other::uuid(plain), Kind::Uuid);
    }
    if !has_more {
        return;
    }
    test(has & MARK != 0 && letters == 0 && other::gps(plain), Kind::Gps);
    if has & (MARK | DOT) != 0 && letters < 4 && other::date(plain).is_some() {
        // Nothing else is written so.
        return test(true, Kind::Date);
    }
    test(letters < 6 && phone::looks(plain), Kind::Phone);
    let mut compact = [0; LONGEST];
    if both > 7
        && has & (AT | COLON) == 0
        && let Some(code) = Code::read(plain, &mut compact)
    {
        national::all(code, each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Kind> {
        let mut out = Vec::new();
        kinds(text, |kind| out.push(kind));
        out.sort_unstable();
        out
    }

    #[test]
    fn words_and_amounts_are_nothing() {
        for text in [
            "",
            "Paris",
            "12.50",
            "-",
            "a",
            "42",
            "3,50 €",
            "Montréal",
            "Jean-Pierre",
            "1 250.00",
            "12:30",
            "rue de la Paix",
            "true",
            "100 %",
            "0.123456789",
            "Chapter 12",
            "https://example.org/a/b",
            "ref-2024-x",
            "10.5 km",
            "f0e1d2c3b4a59687",
            "3.141592653589793",
        ] {
            assert_eq!(all(text), [], "{text}");
        }
    }

    #[test]
    fn both_ways_agree() {
        for (text, kinds) in [
            ("zoe.lefevre@example.fr", &[Kind::Email][..]),
            ("https://zoe:x@example.fr/a", &[Kind::UrlUser]),
            ("'274052B00911146", &[Kind::FrNir]),
            ("2 11 12 2A 512 406 55", &[Kind::FrNir]),
            ("FCZRSR18C20A902W", &[Kind::ItCf]),
            ("NL11BUXJ5098063533", &[Kind::Iban]),
            ("+33 6 12 34 56 78", &[Kind::Phone]),
            ("192.168.1.20", &[Kind::Ip]),
            ("fe80::1", &[Kind::Ip]),
            ("aa:bb:cc:dd:ee:ff", &[Kind::Mac]),
            ("1986-02-14", &[Kind::Date]),
            ("48.8566, 2.3522", &[Kind::Gps]),
            ("SW1A 1AA", &[Kind::Postcode]),
            ("75011", &[Kind::Postcode]),
            ("211148-611H", &[Kind::FiHetu]),
        ] {
            assert_eq!(all(text), kinds, "{text}");
            for kind in Kind::ALL {
                assert_eq!(matches(*kind, text), kinds.contains(kind), "{text} {kind:?}");
            }
        }
    }

    #[test]
    fn numbers_that_lost_their_zeros() {
        assert!(matches_number(Kind::EsDni, "09166010G") && matches_number(Kind::FrSiren, "384309886.0"));
        assert!(matches(Kind::FrSiren, "005880596") && !matches(Kind::FrSiren, "5880596"));
        assert!(matches_number(Kind::FrSiren, "5880596") && matches_number(Kind::FrSiren, "5880596.0"));
        // French social security numbers begin with a sex, and cannot have lost any.
        assert!(!matches_number(Kind::FrNir, "25504130324863"));
        assert!(!matches_number(Kind::FrSiren, "42") && !matches_number(Kind::FrSiren, "0"));
    }

    /// Values that were made for these tests, of each kind as many that are right as that have a wrong check digit.
    #[test]
    fn precision_and_recall_on_labelled_values() {
        use std::collections::BTreeMap;
        let mut scores: BTreeMap<&str, [u32; 4]> = BTreeMap::new();
        for line in include_str!("../../../fixtures/identifiers.tsv").lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            let [id, value, label] = cells[..] else { panic!("{line}") };
            let kind = Kind::ALL.iter().find(|k| k.id() == id).unwrap();
            let place = usize::from(label != "1") * 2 + usize::from(!matches(*kind, value));
            scores.entry(kind.id()).or_default()[place] += 1;
        }
        // Right and found, right and missed, wrong and taken, wrong and refused.
        assert!(scores.len() > 40, "{}", scores.len());
        for (id, [found, missed, taken, refused]) in scores {
            assert!(found >= 24 && refused >= 24 && missed == 0 && taken == 0, "{id}: {found} {missed} {taken} {refused}");
        }
    }

    #[test]
    fn facts_are_of_their_kind() {
        assert_eq!((Kind::FrNir.id(), Kind::Postcode.id()), ("fr_nir", "postcode"));
        assert!(Kind::ALL.iter().all(|k| (0.0..1.0).contains(&k.chance()) && !k.name().is_empty()));
        assert!(Kind::FrNir.is_direct() && !Kind::FrSiret.is_direct() && !Kind::Date.is_direct());
        assert_eq!(Kind::ALL.len(), Kind::FACTS.len());
    }
}
