//! The texts of the report, English and French side by side. Plain spaces before `:;?!%` and within `« »` are made no-break
//! ones by [`Text::typeset`]; `{name}` is filled in by the page. Not here: anything from a manifest.

/// The language of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lang {
    /// British English.
    En,
    /// French of France.
    Fr,
}

impl Lang {
    /// For the `lang` attribute.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::En => "en-GB",
            Self::Fr => "fr",
        }
    }
}

/// A text: English, French. Trusted HTML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text(&'static str, &'static str);

impl Text {
    /// As it is written here.
    pub(super) const fn of(self, lang: Lang) -> &'static str {
        match lang {
            Lang::En => self.0,
            Lang::Fr => self.1,
        }
    }

    /// With the no-break spaces of the language.
    pub(super) fn typeset(self, lang: Lang) -> String {
        let text = self.of(lang).replace("Art. ", "Art.\u{a0}").replace("art. ", "art.\u{a0}").replace("§ ", "§\u{a0}");
        if lang == Lang::En {
            return text;
        }
        let pairs = [(" :", "\u{a0}:"), (" ;", "\u{202f};"), (" ?", "\u{202f}?"), (" !", "\u{202f}!"), (" %", "\u{202f}%")];
        let text = pairs.iter().fold(text, |text, (plain, set)| text.replace(plain, set));
        text.replace("« ", "«\u{a0}").replace(" »", "\u{a0}»")
    }
}

/// A line of a mapping table: where it is written, what the run shows, what it does not show and somebody must decide.
pub(super) struct Line {
    /// Article or topic.
    pub(super) reference: Text,
    /// Shown by this run.
    pub(super) shows: Text,
    /// Not shown.
    pub(super) open: Text,
}

macro_rules! texts {
    ($($name:ident: $en:literal, $fr:literal;)*) => {
        $(pub(super) const $name: Text = Text($en, $fr);)*
        /// All of them, for the tests.
        #[cfg(test)]
        pub(super) const ALL: &[Text] = &[$($name),*];
    };
}

macro_rules! lines {
    ($name:ident: $([$ref_en:literal, $ref_fr:literal; $shows_en:literal, $shows_fr:literal; $open_en:literal, $open_fr:literal])*) => {
        pub(super) const $name: &[Line] = &[$(Line {
            reference: Text($ref_en, $ref_fr),
            shows: Text($shows_en, $shows_fr),
            open: Text($open_en, $open_fr),
        }),*];
    };
}

/// January to December.
pub(super) const MONTHS: [Text; 12] = [
    Text("January", "janvier"),
    Text("February", "février"),
    Text("March", "mars"),
    Text("April", "avril"),
    Text("May", "mai"),
    Text("June", "juin"),
    Text("July", "juillet"),
    Text("August", "août"),
    Text("September", "septembre"),
    Text("October", "octobre"),
    Text("November", "novembre"),
    Text("December", "décembre"),
];

/// The manifest's sentence for which [`NOT_DELETABLE`] stands.
pub(super) const NOT_DELETABLE_RAW: &str = "the question, the column names and what the answer quotes may stay in the provider's abuse monitoring logs for up to 30 days";

/// What the leak check finds, by its name in manifests.
pub(super) const FINDINGS: [Text; 6] = [
    Text("original of a masked column", "valeur d’origine d’une colonne pseudonymisée"),
    Text("e-mail address", "adresse électronique"),
    Text("IBAN", "IBAN"),
    Text("card number", "numéro de carte bancaire"),
    Text("French social security number", "numéro de sécurité sociale (NIR)"),
    Text("telephone number", "numéro de téléphone"),
];

texts! {
    // General
    TITLE: "Pseudonymisation report", "Rapport de pseudonymisation";
    LEDE: "For the data protection officer. Everything below is taken from the manifest that hmask wrote for one run; it contains no value of the table and no secret.",
        "À l’attention du délégué à la protection des données. Tout ce qui suit provient du manifeste établi par hmask pour une seule exécution ; il ne contient aucune valeur de la table ni aucun secret.";
    MISSING: "not recorded", "non consigné";
    NONE: "none", "néant";
    YES: "yes", "oui";
    NO: "no", "non";
    BYTES: "bytes", "octets";
    CHANCE: "about 1 in {n}", "environ 1 sur {n}";
    UNDER: "under ", "moins de ";
    OVER: "over ", "plus de ";
    CHANCE_NONE: "none", "nul";
    CHANCE_TINY: "less than 1 in a million billion", "moins de 1 sur un million de milliards";
    DOMAIN: "domain", "domaine";

    // Verdict
    GONE: "Lent and confirmed gone.", "Prêt terminé, suppression confirmée.";
    GONE_MORE: "What this run placed with the recipient was deleted, then looked for and no longer found.",
        "Ce que cette exécution a déposé chez le destinataire a été supprimé, puis recherché, et n’y a plus été trouvé.";
    MASKED: "Masked only: nothing was sent.", "Pseudonymisation seule : rien n’a été transmis.";
    MASKED_MORE: "This run wrote a pseudonymised table here and passed it to nobody. What was done with the file afterwards is not in this manifest.",
        "Cette exécution a produit une table pseudonymisée en interne et ne l’a communiquée à personne. L’usage ultérieur du fichier ne figure pas dans ce manifeste.";
    LIVE: "Something may still be live with the recipient.", "Des données peuvent subsister chez le destinataire.";
    LIVE_MORE: "Not confirmed as deleted:", "Suppression non confirmée pour :";
    LIVE_DO: "To do now: <code>hmask sweep</code> tries again; it exits with 0 once nothing is left.",
        "À faire sans délai : <code>hmask sweep</code> relance la suppression ; son code de retour vaut 0 lorsqu’il ne reste rien.";
    LIVE_UNTIL: "If the recipient honours the expiry that it granted, an upload ends by itself by {time} at the latest. A container ends by the provider’s own rule.",
        "Si le destinataire respecte l’expiration accordée, un fichier déposé s’efface de lui-même au plus tard le {time}. Un conteneur suit la règle propre au fournisseur.";
    UNKNOWN: "Not established.", "Non établi.";
    UNKNOWN_MORE: "The manifest does not record that what was lent, if anything was, is gone. Treat it as still live until shown otherwise.",
        "Le manifeste ne consigne pas que les données éventuellement prêtées ont disparu. Il convient de les considérer comme subsistantes jusqu’à preuve du contraire.";
    LOOPBACK: "The recipient’s address is a loopback one: as far as an address can tell, the table did not leave this machine.",
        "L’adresse du destinataire est une adresse de bouclage : pour autant qu’une adresse permette d’en juger, la table n’a pas quitté cette machine.";
    STILL_PERSONAL: "Pseudonymised data remain personal data (GDPR, Recital 26).",
        "Les données pseudonymisées demeurent des données à caractère personnel (RGPD, considérant 26).";
    STILL_PERSONAL_MORE: "They are not anonymous: whoever holds the key or the source table can attribute them again. For the controller the GDPR applies in full. Whether they are personal data for the recipient too depends on the means it could reasonably use (Court of Justice, 4 September 2025, C‑413/23 P); that is not for this page to say.",
        "Elles ne sont pas anonymes : quiconque détient la clé ou la table source peut les attribuer de nouveau. Le RGPD s’applique pleinement au responsable du traitement. Savoir si elles sont aussi personnelles pour le destinataire dépend des moyens qu’il pourrait raisonnablement mettre en œuvre (CJUE, 4 septembre 2025, C‑413/23 P) ; le présent document ne se prononce pas sur ce point.";

    // Points for decision
    POINTS: "Points that call for a decision", "Points appelant une décision";
    POINT_PURPOSE: "No purpose is stated in the policy.", "Aucune finalité n’est indiquée dans la politique.";
    POINT_RECIPIENT: "The policy names no recipient: only the address is known.", "La politique ne désigne aucun destinataire : seule l’adresse est connue.";
    POINT_ACCEPTED: "Findings of the leak check that were accepted: {n}.", "Constats du contrôle acceptés par l’utilisateur : {n}.";
    POINT_RISK: "No re-identification risk was measured: no quasi-identifiers were named.", "Le risque de réidentification n’a pas été mesuré : aucun quasi-identifiant n’a été désigné.";
    POINT_UNIQUE: "Rows that are unique by their quasi-identifiers: {n}.", "Lignes uniques au regard des quasi-identifiants : {n}.";
    POINT_THRESHOLD: "A threshold of the policy is not met (see “Risk of singling out”).", "Un seuil de la politique n’est pas respecté (voir « Risque d’individualisation »).";
    POINT_ANSWER: "The use was not completed: what was lent may have served no purpose.", "L’utilisation n’a pas été menée à terme : le prêt a pu ne pas servir sa finalité.";
    POINT_NO_TOKEN: "No column carries a pseudonym.", "Aucune colonne ne porte de pseudonyme.";

    // Facts
    SENT: "What was sent, to whom and why", "Données transmises, destinataire et finalité";
    MADE: "What was made (nothing was sent)", "Données produites (aucune transmission)";
    RUN: "The run (whether anything was sent is not recorded)", "L’exécution (une éventuelle transmission n’est pas consignée)";
    TASK: "Task", "Tâche";
    TOOL: "Tool", "Outil";
    WHEN: "When", "Date";
    WHEN_SPAN: "from {from} to {to}", "du {from} au {to}";
    WHEN_LONG: "duration {n}", "durée {n}";
    RECIPIENT: "Recipient", "Destinataire";
    NO_RECIPIENT: "not stated (the policy names none)", "non précisé (la politique n’en désigne aucun)";
    ENDPOINT: "Address contacted", "Adresse contactée";
    ENDPOINT_NONE: "none", "aucune";
    PURPOSE: "Purpose", "Finalité";
    NO_PURPOSE: "not stated (the controller has to record it)", "non précisée (à consigner par le responsable du traitement)";
    REMOTE_NAME: "Name given to the recipient", "Nom communiqué au destinataire";
    ROWS: "Rows", "Lignes";
    CHOSEN: "Rows chosen by", "Lignes retenues par";
    INPUT: "Source table", "Table source";
    OUTPUT_SENT: "Table as sent", "Table transmise";
    OUTPUT_MADE: "Table as made", "Table produite";
    NO_NAME: "without a file name", "sans nom de fichier";
    POLICY: "Policy", "Politique de masquage";
    NO_POLICY: "none (columns were given on the command line)", "aucune (colonnes indiquées en ligne de commande)";
    ONLY_TABLE: "With the table the recipient learns the column names and, where a question was asked, the question. The source’s file name and path are not sent.",
        "Outre la table, le destinataire prend connaissance des noms de colonnes et, le cas échéant, de la question posée. Ni le nom ni le chemin du fichier source ne sont transmis.";

    // Columns
    HOW: "What was masked, and how", "Colonnes traitées et procédés appliqués";
    COLUMNS_CAPTION: "Treated columns", "Colonnes traitées";
    COLUMN: "Column", "Colonne";
    TREATMENT: "Treatment", "Traitement appliqué";
    NORMALISE: "Normalised before", "Normalisation préalable";
    VALUES: "Values", "Valeurs";
    ABSENT: "Empty", "Vides";
    DISTINCT: "Distinct", "Distinctes";
    COLLISION: "Chance of a collision", "Risque de collision";
    COLUMNS_NOTE: "Empty: null or empty fields, which stay as they are. Distinct: an estimate. A collision would give two values the same pseudonym; the chance is for the whole column, and an upper bound.",
        "Vides : valeurs nulles ou champs vides, laissés tels quels. Distinctes : estimation. Une collision attribuerait le même pseudonyme à deux valeurs ; le risque s’entend pour toute la colonne et constitue un majorant.";
    NO_COLUMNS: "No treated column is recorded.", "Aucune colonne traitée n’est consignée.";
    DROPPED: "Columns removed", "Colonnes supprimées";
    KEPT: "Columns kept as they are", "Colonnes conservées telles quelles";
    KEPT_NOTE: "Kept columns are in clear. They may identify a person by themselves or together.",
        "Les colonnes conservées figurent en clair. Isolément ou combinées, elles peuvent permettre d’identifier une personne.";
    UNICODE: "Version of Unicode used for normalisation", "Version d’Unicode employée pour la normalisation";
    TREAT_PSEUDONYM: "replaced by a keyed pseudonym (HMAC‑SHA256, {digits})", "remplacée par un pseudonyme à clé (HMAC‑SHA256, {digits})";
    DIGITS: "{n} hex digits", "{n} chiffres hexadécimaux";
    DIGITS_MISSING: "length not recorded", "longueur non consignée";
    TREAT_KEEP: "kept as it is", "conservée telle quelle";
    TREAT_DROP: "removed", "supprimée";
    TREAT_REDACT: "replaced by one constant", "remplacée par une constante";
    TREAT_TRUNCATE: "cut to its first {n} characters", "réduite à ses {n} premiers caractères";
    TREAT_YEAR: "date reduced to the year", "date réduite à l’année";
    TREAT_MONTH: "date reduced to the month", "date réduite au mois";
    TREAT_BUCKET: "number reduced to ranges of {n}", "nombre ramené à des tranches de {n}";
    TREAT_SHIFT: "dates shifted by a keyed offset of at most {n} days, the same for all dates of one person", "dates décalées d’un nombre de jours dérivé de la clé ({n} au plus), identique pour toutes les dates d’une même personne";
    NORM_TRIM: "outer spaces removed", "espaces de début et de fin retirées";
    NORM_NFC: "Unicode NFC", "Unicode NFC";
    NORM_LOWER: "case folded", "casse ignorée";
    NORM_EMAIL: "e‑mail form", "forme d’adresse électronique";
    NORM_PHONE: "telephone number to E.164 ({n})", "numéro de téléphone au format E.164 ({n})";
    NORM_DIGITS: "digits only", "chiffres seuls";
    NORM_ALNUM: "letters and digits only", "lettres et chiffres seuls";

    // Key
    KEY: "Key and scope", "Clé et portée des pseudonymes";
    KEY_ID: "Key id", "Identifiant de la clé";
    SCOPE: "Scope", "Portée";
    KEY_WHERE: "The key is not in this page, nor in the manifest, nor in the table: only its id is, from which the key cannot be computed. The key, like the source table, is the additional information of Art. 4(5) GDPR: it has to be kept separately, in a custody of its own, under technical and organisational measures. This page cannot show that it is.",
        "La clé ne figure ni dans cette page, ni dans le manifeste, ni dans la table : seul y figure son identifiant, qui ne permet pas de la retrouver. La clé constitue, comme la table source, une information supplémentaire au sens de l’art. 4, point 5), du RGPD : elle doit être conservée séparément, sous une garde distincte et sous mesures techniques et organisationnelles. Le présent document ne peut pas l’attester.";
    SCOPE_STABLE: "The same value has the same pseudonym in every run, file and column made with this key: tables can be joined, and so can what two recipients received.",
        "Une même valeur reçoit le même pseudonyme dans toutes les exécutions, tous les fichiers et toutes les colonnes traités avec cette clé : les tables peuvent être rapprochées, de même que celles reçues par deux destinataires.";
    SCOPE_UPLOAD: "Pseudonyms are made for this run alone: they cannot be linked with those of another run without the key.",
        "Les pseudonymes sont propres à cette exécution : sans la clé, ils ne peuvent être rapprochés de ceux d’une autre.";
    SCOPE_RECIPIENT: "Pseudonyms are made for this recipient: without the key they cannot be linked with what another recipient received.",
        "Les pseudonymes sont propres à ce destinataire : sans la clé, ils ne peuvent être rapprochés de ceux reçus par un autre.";
    SCOPE_PROJECT: "Pseudonyms are made for this project: without the key they cannot be linked with those of another project.",
        "Les pseudonymes sont propres à ce projet : sans la clé, ils ne peuvent être rapprochés de ceux d’un autre.";
    SCOPE_OTHER: "This page does not know that scope.", "Portée inconnue de ce rapport.";

    // Gate
    GATE: "Check of what was not masked", "Contrôle de ce qui n’a pas été pseudonymisé";
    GATE_MISSING: "Not recorded: do not assume that a check took place.", "Non consigné : ne pas présumer qu’un contrôle a eu lieu.";
    GATE_FOR: "All that was not masked was searched for the original values of the masked columns, whatever their case, accents, punctuation, spacing and order of names, and for e‑mail addresses, telephone numbers, IBAN, payment card numbers and national numbers with check digits. A finding stops the run, unless the user accepts it by name of column.",
        "Tout ce qui n’a pas été pseudonymisé a été examiné à la recherche des valeurs d’origine des colonnes pseudonymisées, indépendamment de la casse, des accents, de la ponctuation, des espaces et de l’ordre des noms, ainsi que d’adresses électroniques, de numéros de téléphone, d’IBAN, de numéros de carte bancaire et de numéros nationaux à clé de contrôle (NIR et autres). Un constat interrompt l’exécution, sauf acceptation par l’utilisateur, colonne par colonne.";
    ORIGINALS: "Distinct original values looked for", "Valeurs d’origine distinctes recherchées";
    TOO_SHORT: "Not looked for: too short (under 4 letters or 6 digits)", "Non recherchées : trop courtes (moins de 4 lettres ou de 6 chiffres)";
    PLACEHOLDERS: "Not looked for: placeholders such as “unknown”", "Non recherchées : valeurs de remplissage (« inconnu », etc.)";
    ACCEPTED: "Found and accepted", "Constats acceptés";
    ACCEPTED_NONE: "none", "aucun";
    FOUND: "column {column}: {what} in {cells}, first in record {record}", "colonne {column} : {what}, {cells}, première occurrence à l’enregistrement {record}";
    FOUND_HEADER: "header: {what} in {cells}", "en-tête : {what}, {cells}";
    CELL: "1\u{a0}cell", "1\u{a0}cellule";
    CELLS: "{n}\u{a0}cells", "{n}\u{a0}cellules";
    GATE_BLIND: "What no such check can see: parts of a name, paraphrases, names within a sentence of a script without spaces, and people known by their circumstances.",
        "Ce qu’un tel contrôle ne peut pas voir : fragments de noms, périphrases, noms au sein d’une phrase dans une écriture sans espaces, personnes reconnaissables à leur situation.";

    // Risk
    RISK: "Risk of singling out", "Risque d’individualisation";
    RISK_NONE: "Not measured in this run. That is no finding that there is no risk.", "Non mesuré lors de cette exécution. Cela ne signifie pas que le risque est nul.";
    RISK_MISSING: "Not recorded in the manifest.", "Non consigné dans le manifeste.";
    RISK_WHAT: "Rows with the same combination of quasi-identifiers form a group; k is the size of a group. A row in a group of 1 is unique, and whoever knows these attributes of a person finds that person’s row.",
        "Les lignes qui présentent la même combinaison de quasi-identifiants forment un groupe ; k est l’effectif du groupe. Une ligne seule dans son groupe est unique : quiconque connaît ces attributs d’une personne retrouve sa ligne.";
    QUASI: "Quasi-identifiers taken into account", "Quasi-identifiants pris en compte";
    GROUPS: "Groups", "Groupes";
    K_MIN: "Smallest group (k)", "Plus petit groupe (k)";
    UNIQUE: "Unique rows", "Lignes uniques";
    SENSITIVE: "Sensitive attribute", "Attribut sensible";
    SENSITIVE_NONE: "none named", "aucun désigné";
    L_MIN: "Fewest distinct values of it in a group (l)", "Plus petit nombre de valeurs distinctes par groupe (l)";
    RISK_CAPTION: "Figures and thresholds", "Mesures et seuils";
    FIGURE: "Figure", "Indicateur";
    MEASURED: "Measured", "Mesure";
    THRESHOLD: "Threshold of the policy", "Seuil de la politique";
    AT_LEAST: "at least {n}", "au moins {n}";
    AT_MOST: "at most {n}", "au plus {n}";
    MET: "met", "respecté";
    NOT_MET: "not met", "non respecté";
    NO_THRESHOLD: "none", "aucun";
    PLOT_TITLE: "Rows by size of their group", "Nombre de lignes selon l’effectif du groupe";
    PLOT_DESC: "Bar chart; the table “Rows by size of group” beside it holds the same figures.", "Diagramme en barres ; le tableau « Lignes selon l’effectif du groupe », à proximité, contient les mêmes chiffres.";
    PLOT_AXIS: "size of group (k)", "effectif du groupe (k)";
    PLOT_LOW: "Dark, hatched: groups smaller than the threshold of {n}.", "Barres foncées et hachurées : groupes d’effectif inférieur au seuil de {n}.";
    PLOT_UNIQUE: "Dark, hatched: unique rows.", "Barre foncée et hachurée : lignes uniques.";
    K_CAPTION: "Rows by size of group", "Lignes selon l’effectif du groupe";
    K: "Group size (k)", "Effectif (k)";
    SHARE: "Share", "Part";
    AND_MORE: "{n} or more", "{n} et plus";

    // Loan
    LOAN: "The loan and its end", "Le prêt et son terme";
    LOAN_NONE: "Nothing was lent, so there was nothing to delete elsewhere.", "Aucun prêt n’a eu lieu : il n’y avait rien à supprimer chez un tiers.";
    LOAN_MISSING: "Not recorded: do not assume that nothing was lent.", "Non consigné : ne pas présumer qu’aucun prêt n’a eu lieu.";
    STEP_MASK: "Masked and checked here, before any contact", "Pseudonymisation et contrôle en interne, avant toute connexion";
    STEP_SEND: "Sent under the neutral name {name}", "Transmission sous le nom neutre {name}";
    STEP_EXPIRY: "Expiry as a safety net: asked for {asked}, granted {granted}", "Expiration, à titre de filet de sécurité : demandée {asked}, accordée {granted}";
    STEP_ANSWER: "Use completed (question answered, or command run): {answer}", "Utilisation menée à terme (réponse reçue ou commande exécutée) : {answer}";
    STEP_GONE: "Deleted, then looked for and not found", "Supprimé, puis recherché et non trouvé";
    STEP_LIVE: "Not confirmed as deleted", "Suppression non confirmée";
    STEP_NO_CONFIRM: "Confirmation of the deletion: not recorded", "Confirmation de la suppression : non consignée";
    STEP_END: "End of the run", "Fin de l’exécution";
    LOAN_PROOF: "“Confirmed” means that the recipient’s service, asked again after the deletion, no longer knew the object. It is the service’s own answer: it proves nothing about backups, caches or logs.",
        "« Confirmé » signifie que le service du destinataire, interrogé de nouveau après la suppression, ne connaissait plus l’objet. Il s’agit de la réponse du service lui-même : elle ne prouve rien quant aux sauvegardes, caches ou journaux.";
    REMAINS: "What cannot be deleted", "Ce qui ne peut être supprimé";
    NOT_DELETABLE: "The question, the column names and what the answer quotes may stay in the provider’s abuse monitoring logs for up to 30 days.",
        "La question, les noms de colonnes et les extraits cités dans la réponse peuvent subsister jusqu’à 30 jours dans les journaux de détection des abus du fournisseur.";
    REMAINS_NOTE: "hmask has no means to delete these. The provider’s retention terms that apply to the account are for the controller to check.",
        "hmask n’a aucun moyen de supprimer ces éléments. Il appartient au responsable du traitement de vérifier les conditions de conservation applicables à son compte chez le fournisseur.";
    REMAINS_NONE: "Nothing was sent in this run, so nothing remains elsewhere because of it.", "Rien n’a été transmis lors de cette exécution : rien ne subsiste donc chez un tiers de son fait.";

    // Check
    CHECK: "How to check this page", "Comment vérifier ce rapport";
    CHECK_VERIFY: "Recompute what the manifest claims, from the files and the key:", "Recalculer ce qu’affirme le manifeste, à partir des fichiers et de la clé :";
    CHECK_HASH: "The SHA‑256 of each file above is also what <code>sha256sum FILE</code> prints.", "L’empreinte SHA‑256 de chaque fichier ci-dessus est aussi celle qu’affiche <code>sha256sum FICHIER</code>.";
    CHECK_PYTHON: "Recompute one pseudonym without hmask, where the key is kept:", "Recalculer un pseudonyme sans hmask, là où la clé est conservée :";
    CHECK_PLAIN: "This holds for the scope <code>stable</code>, a column without a domain, without a prefix and, if it is normalised, for the value in its normalised form. For other lengths, put the number of digits for 16; for other scopes and domains a subkey takes the key’s place (HKDF‑SHA256, see <code>docs/spec.md</code>).",
        "Valable pour la portée <code>stable</code>, une colonne sans domaine ni préfixe et, en cas de normalisation, la valeur sous sa forme normalisée. Pour une autre longueur, remplacer 16 par le nombre de chiffres ; pour une autre portée ou un domaine, une sous-clé remplace la clé (HKDF‑SHA256, voir <code>docs/spec.md</code>).";
    CHECK_SIGNED: "The page itself proves nothing: it repeats the manifest, and verifies neither the files nor a signature.", "La page elle-même ne prouve rien : elle reprend le manifeste et ne vérifie ni les fichiers ni une signature.";

    // Mapping
    MAP: "What this run shows, and what it leaves to the controller", "Ce que cette exécution établit et ce qui relève du responsable du traitement";
    MAP_NOTE: "This is an aid to an assessment, not one, and not legal advice. The middle column says what the manifest records of this run, or what hmask is built to do; the last column, what no tool can decide.",
        "Ces tableaux aident à l’analyse ; ils n’en tiennent pas lieu et ne constituent pas un avis juridique. La colonne centrale énonce ce que le manifeste consigne ou ce pour quoi hmask est conçu ; la dernière, ce qu’aucun outil ne peut décider.";
    MAP_GDPR: "General Data Protection Regulation (EU) 2016/679", "Règlement général sur la protection des données (UE) 2016/679";
    MAP_EDPB: "EDPB Guidelines 01/2025 on Pseudonymisation, by topic", "Lignes directrices 01/2025 du CEPD (EDPB) sur la pseudonymisation, par thème";
    MAP_EDPB_NOTE: "Version adopted on 16 January 2025 for public consultation; check whether a later version applies. Topics are named in our words.",
        "Version adoptée le 16 janvier 2025 et soumise à consultation publique ; vérifier si une version ultérieure s’applique. Les thèmes sont désignés dans nos propres termes.";
    MAP_REF: "Provision", "Disposition";
    MAP_TOPIC: "Topic", "Thème";
    MAP_SHOWS: "This run shows", "Établi par cette exécution";
    MAP_OPEN: "Not shown: the controller decides", "Non établi : à décider par le responsable du traitement";

    // Sentences of the mapping that depend on the run
    S_TOKENS: "Columns that carry keyed pseudonyms: {n}.", "Colonnes portant des pseudonymes à clé : {n}.";
    S_MINIMAL: "Columns removed: {dropped}; pseudonymised: {tokens}; otherwise reduced: {reduced}; kept as they are: {kept}.",
        "Colonnes supprimées : {dropped} ; pseudonymisées : {tokens} ; autrement réduites : {reduced} ; conservées telles quelles : {kept}.";
    S_END_GONE: "Expiry asked for: {asked}; granted: {granted}. Objects deleted and confirmed gone: {n}.", "Expiration demandée : {asked} ; accordée : {granted}. Objets supprimés, suppression confirmée : {n}.";
    S_END_LIVE: "Expiry asked for: {asked}; granted: {granted}. <strong>Objects that may still be live: {n}.</strong>", "Expiration demandée : {asked} ; accordée : {granted}. <strong>Objets susceptibles de subsister : {n}.</strong>";
    S_END_MASKED: "This run stored nothing with a third party.", "Cette exécution n’a rien stocké chez un tiers.";
    S_END_UNKNOWN: "<strong>Nothing: the end of the loan is not recorded.</strong>", "<strong>Rien : le terme du prêt n’est pas consigné.</strong>";
    S_TO: "Recipient as the policy names it: {recipient}. Address contacted: {endpoint}.", "Destinataire désigné par la politique : {recipient}. Adresse contactée : {endpoint}.";
    S_TO_NONE: "This run passed nothing to a recipient.", "Cette exécution n’a rien communiqué à un destinataire.";
    S_TO_UNKNOWN: "The manifest does not record whether anything was passed to a recipient.", "Le manifeste ne consigne pas si des données ont été communiquées à un destinataire.";
    S_RISK: "Quasi-identifiers named: {n}. Smallest group: {k}. Unique rows: {unique}.", "Quasi-identifiants désignés : {n}. Plus petit groupe : {k}. Lignes uniques : {unique}.";
    S_RISK_NONE: "Nothing: no risk was measured.", "Rien : le risque n’a pas été mesuré.";
    S_CHECK: "Original values looked for in what was not masked: {n}. Findings accepted: {accepted}.", "Valeurs d’origine recherchées dans ce qui n’a pas été pseudonymisé : {n}. Constats acceptés : {accepted}.";

    // Sign-off
    SIGN: "Opinion and decision", "Avis et décision";
    SIGN_DPO: "Opinion of the data protection officer (Art. 39)", "Avis du délégué à la protection des données (art. 39)";
    SIGN_CONTROLLER: "Decision of the controller", "Décision du responsable du traitement";
    SIGN_LINE: "Name, date, signature", "Nom, date, signature";
    FOOTER: "Made from the manifest of task {task} by {tool}.", "Établi à partir du manifeste de la tâche {task} par {tool}.";
}

lines! { GDPR:
    ["Art. 4(5): pseudonymisation", "Art. 4, point 5) : pseudonymisation";
     "{tokens} Without the key nobody can recompute a pseudonym or check a guess. Of the key (id <code>{key_id}</code>) nothing but the id is recorded.",
     "{tokens} Sans la clé, nul ne peut recalculer un pseudonyme ni vérifier une hypothèse. De la clé (identifiant <code>{key_id}</code>), seul l’identifiant est consigné.";
     "That key and source table are kept separately, under technical and organisational measures, and who has access to them. Whether what remains in clear allows attribution all the same.",
     "Que la clé et la table source sont conservées séparément, sous mesures techniques et organisationnelles, et qui y accède. Si ce qui reste en clair permet malgré tout l’attribution."]
    ["Art. 5(1)(c): data minimisation", "Art. 5, § 1, c) : minimisation des données";
     "{minimal}", "{minimal}";
     "Whether each kept column, each row and each level of detail is necessary for the purpose.",
     "Si chaque colonne conservée, chaque ligne et chaque degré de précision est nécessaire au regard de la finalité."]
    ["Art. 5(1)(e): storage limitation", "Art. 5, § 1, e) : limitation de la conservation";
     "{end}", "{end}";
     "How long source, masked table, answer and manifest are kept in the house; what the recipient keeps in logs and backups.",
     "La durée de conservation, en interne, de la source, de la table pseudonymisée, de la réponse et du manifeste ; ce que le destinataire conserve dans ses journaux et sauvegardes."]
    ["Art. 5(2): accountability", "Art. 5, § 2 : responsabilité";
     "Times, sizes, SHA‑256 hashes, counts and settings are recorded and can be recomputed with <code>hmask verify</code>.",
     "Dates, tailles, empreintes SHA‑256, effectifs et paramètres sont consignés et peuvent être recalculés avec <code>hmask verify</code>.";
     "Who ordered and approved the run; that the manifest is kept unaltered.",
     "Qui a demandé et approuvé l’exécution ; que le manifeste est conservé sans altération."]
    ["Art. 6, 9, 13 and 14: lawfulness, special categories, information", "Art. 6, 9, 13 et 14 : licéité, catégories particulières, information";
     "Nothing.", "Rien.";
     "The legal basis; whether special categories are concerned; that data subjects were told of the recipients or categories of recipients.",
     "La base légale ; la présence éventuelle de catégories particulières ; l’information des personnes concernées sur les destinataires ou catégories de destinataires."]
    ["Art. 25: data protection by design and by default", "Art. 25 : protection des données dès la conception et par défaut";
     "The order is fixed: masked and checked first, sent afterwards. A file that cannot be read with certainty is refused, and a finding stops the run unless it is accepted by name.",
     "L’ordre est imposé : pseudonymisation et contrôle d’abord, transmission ensuite. Un fichier qui ne peut être lu avec certitude est refusé, et un constat interrompt l’exécution, sauf acceptation expresse.";
     "The design of the processing as a whole, and whether this treatment suits its risks and the state of the art.",
     "La conception du traitement dans son ensemble, et l’adéquation de ce procédé à ses risques et à l’état de l’art."]
    ["Art. 28: processor", "Art. 28 : sous-traitant";
     "{to}", "{to}";
     "Whether the recipient is a processor or a controller; the contract under Art. 28(3), its instructions, sub-processors, and any use for the recipient’s own ends.",
     "Si le destinataire est sous-traitant ou responsable du traitement ; le contrat prévu à l’art. 28, § 3, ses instructions, les sous-traitants ultérieurs et toute utilisation pour le compte propre du destinataire."]
    ["Art. 30: records of processing activities", "Art. 30 : registre des activités de traitement";
     "Material for an entry: purpose, recipient and time limits as far as recorded, columns, security measures.",
     "Des éléments pour une fiche du registre : finalité, destinataire et délais s’ils sont consignés, colonnes, mesures de sécurité.";
     "The entry itself: categories of data subjects and of data, contacts, transfers, general time limits.",
     "La fiche elle-même : catégories de personnes concernées et de données, coordonnées, transferts, délais généraux d’effacement."]
    ["Art. 32(1)(a): pseudonymisation and encryption", "Art. 32, § 1, a) : pseudonymisation et chiffrement";
     "{tokens} hmask refuses keys under 32 bytes, and sends over https only, loopback excepted.",
     "{tokens} hmask refuse toute clé de moins de 32 octets et ne transmet qu’en https, adresse de bouclage exceptée.";
     "Whether this security suits the risk; quality, custody, rotation and destruction of the key; encryption at rest in the house.",
     "L’adéquation de ces mesures au risque ; la qualité, la garde, le renouvellement et la destruction de la clé ; le chiffrement des données stockées en interne."]
    ["Art. 35: impact assessment", "Art. 35 : analyse d’impact (AIPD)";
     "{risk}", "{risk}";
     "Whether an impact assessment is required, and its conclusions.",
     "Si une analyse d’impact est requise, et ses conclusions."]
    ["Art. 44 to 49: transfers to third countries", "Art. 44 à 49 : transferts vers des pays tiers";
     "{to} An address does not tell where data are processed or from where they can be accessed.",
     "{to} Une adresse n’indique ni où les données sont traitées, ni d’où elles sont accessibles.";
     "Whether there is a transfer; adequacy decision (Art. 45), appropriate safeguards (Art. 46) or derogation (Art. 49); supplementary measures.",
     "S’il y a transfert ; décision d’adéquation (art. 45), garanties appropriées (art. 46) ou dérogation (art. 49) ; mesures supplémentaires."]
}

lines! { EDPB:
    ["Pseudonymisation domain", "Domaine de pseudonymisation";
     "{to}", "{to}";
     "Who belongs to the domain (staff, the recipient, its sub-processors), and that nobody in it has the additional information or can reasonably obtain it.",
     "Qui relève du domaine (personnel, destinataire, sous-traitants ultérieurs), et que nul n’y détient les informations supplémentaires ni ne peut raisonnablement les obtenir."]
    ["Transformation by a keyed one-way function", "Transformation par une fonction à sens unique à clé";
     "{tokens} HMAC‑SHA256; no table of correspondences is made. Chances of collision are in the table of columns.",
     "{tokens} HMAC‑SHA256 ; aucune table de correspondance n’est constituée. Les risques de collision figurent au tableau des colonnes.";
     "That the key was drawn at random (<code>hmask keygen</code> does). Whoever has it can check guesses, and so read dates, postcodes or telephone numbers.",
     "Que la clé a été tirée au hasard (ce que fait <code>hmask keygen</code>). Quiconque la détient peut vérifier des hypothèses, et donc retrouver dates, codes postaux ou numéros de téléphone."]
    ["Pseudonymisation secrets and additional information, kept separately", "Secrets de pseudonymisation et informations supplémentaires, conservés séparément";
     "The key is in none of the files: they bear its id, <code>{key_id}</code>.",
     "La clé ne figure dans aucun des fichiers : ils n’en portent que l’identifiant, <code>{key_id}</code>.";
     "Custody of the key and of the source table, rights of access, rotation, erasure; answers whose pseudonyms were turned back here.",
     "La garde de la clé et de la table source, les habilitations, le renouvellement, l’effacement ; les réponses réattribuées en interne."]
    ["Linkability of pseudonyms", "Caractère rapprochable des pseudonymes";
     "{scope}", "{scope}";
     "Whether that reach is needed for the purpose; otherwise a narrower scope or domain.",
     "Si cette portée est nécessaire à la finalité ; à défaut, une portée ou un domaine plus étroits."]
    ["Quasi-identifiers", "Quasi-identifiants";
     "{risk} {minimal}", "{risk} {minimal}";
     "Which columns are quasi-identifiers in view of what others may know; whether to remove, generalise or randomise more of them.",
     "Quelles colonnes sont des quasi-identifiants compte tenu de ce que des tiers peuvent savoir ; s’il faut en supprimer, en généraliser ou en altérer davantage."]
    ["Attribution to a person", "Attribution à une personne";
     "{check} Equal values, their frequencies and empty cells stay visible by design.",
     "{check} L’égalité des valeurs, leur fréquence et les cellules vides restent visibles, par construction.";
     "The means reasonably likely to be used for attribution (Recital 26), by the recipient or by others; singling out, frequencies, free text.",
     "Les moyens raisonnablement susceptibles d’être utilisés pour l’attribution (considérant 26), par le destinataire ou par d’autres ; individualisation, fréquences, texte libre."]
    ["Unauthorised reversal", "Renversement non autorisé";
     "Turning a pseudonym back takes the key or the source table, and hmask sends neither. Attribution by what is in clear takes neither (see the line above).",
     "Remonter d’un pseudonyme à la valeur suppose la clé ou la table source ; hmask ne transmet ni l’une ni l’autre. L’attribution à partir de ce qui figure en clair ne suppose ni l’une ni l’autre (voir la ligne précédente).";
     "How it would be noticed. It is a personal data breach (Art. 4(12)), to be assessed under Art. 33 and 34.",
     "Comment il serait détecté. Il constitue une violation de données (art. 4, point 12), à apprécier au titre des art. 33 et 34."]
    ["Disclosure to others, and third countries", "Communication à des tiers et pays tiers";
     "{end}", "{end}";
     "That the recipient is bound not to attribute the data; whether pseudonymisation is effective as a supplementary measure against access by public authorities, too.",
     "Que le destinataire s’est engagé à ne pas réattribuer les données ; si la pseudonymisation est effective à titre de mesure supplémentaire, y compris face à un accès par des autorités publiques."]
    ["Rights of data subjects", "Droits des personnes concernées";
     "Whoever has the key and this manifest can find the rows of a person again by a pseudonymised identifier.",
     "Quiconque détient la clé et ce manifeste peut retrouver les lignes d’une personne à partir d’un identifiant pseudonymisé.";
     "How access, rectification, erasure and objection are answered, in the masked table and in answers kept here, too; where Art. 11 applies.",
     "Comment il est donné suite aux droits d’accès, de rectification, d’effacement et d’opposition, y compris dans la table pseudonymisée et les réponses conservées ; où l’art. 11 s’applique."]
}
