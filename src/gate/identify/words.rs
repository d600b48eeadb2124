//! Words of headers in French, English, German, Spanish and Italian; without accents.

use super::headers::Meaning;

/// Phrases, between bars; those that mean nothing else.
pub(super) const PHRASES: &[(Meaning, &str)] = &[
    (
        Meaning::LastName,
        "nom de famille|nom usage|nom d usage|nom naissance|nom de naissance|nom jeune fille|nom de jeune fille|patronyme|\
         surname|last name|family name|lname|maiden name|nachname|familienname|zuname|geburtsname|apellido|apellidos|\
         primer apellido|segundo apellido|cognome|cognomi",
    ),
    (
        Meaning::FirstName,
        "prenom|prenoms|first name|given name|forename|fname|middle name|vorname|vornamen|rufname|nombre de pila|\
         nombre propio|nome di battesimo",
    ),
    (
        Meaning::FullName,
        "nom complet|nom prenom|nom prenoms|nom et prenom|nom et prenoms|prenom nom|prenom et nom|full name|display name|\
         first and last name|account holder|account holder name|vollstandiger name|name vorname|vorname name|\
         vor und nachname|ansprechpartner|kontoinhaber|kundenname|nombre completo|nombre y apellidos|apellidos y nombre|\
         nombre apellidos|nombre cliente|nombre de cliente|nombre del cliente|nombre paciente|nombre del paciente|\
         nombre empleado|nombre del empleado|nominativo|nome e cognome|cognome e nome|nome cognome|nome completo|\
         intestatario",
    ),
    (
        Meaning::Email,
        "email|e mail|mail|courriel|adresse mail|adresse email|adresse electronique|email address|mailadresse|email adresse|\
         correo|correo electronico|posta elettronica|indirizzo email|indirizzo mail|pec",
    ),
    (
        Meaning::Phone,
        "telephone|tel|portable|gsm|numero de telephone|telephone number|phone|phone number|mobile phone|mobile number|\
         cell phone|cellphone|telefon|telefonnummer|handy|handynummer|mobilnummer|festnetz|rufnummer|telefono|tlf|\
         telefono movil|celular|cellulare|recapito telefonico|fax|telefax|faxnummer|whatsapp",
    ),
    (
        Meaning::Address,
        "adresse|adresse postale|complement adresse|complement d adresse|domicile|address|address line|postal address|\
         home address|addr|anschrift|wohnadresse|direccion|domicilio|indirizzo|residenza",
    ),
    (
        Meaning::Street,
        "rue|voie|numero voie|numero de voie|nom de voie|libelle voie|street|street address|street name|strasse|\
         strassenname|hausnummer|calle|civico|numero civico",
    ),
    (
        Meaning::City,
        "ville|commune|localite|city|town|locality|wohnort|stadt|ciudad|localidad|municipio|citta|comune di residenza|\
         localita",
    ),
    (
        Meaning::Postcode,
        "code postal|postcode|post code|postal code|zip code|zipcode|plz|postleitzahl|codigo postal|codice postale",
    ),
    (
        Meaning::BirthDate,
        "date de naissance|date naissance|naissance|annee naissance|annee de naissance|ne le|nee le|ddn|date of birth|\
         birth date|birthday|birth year|year of birth|dob|geburtsdatum|geburtstag|geburtsjahr|geb datum|geboren am|\
         fecha de nacimiento|fecha nacimiento|nacimiento|f nac|data di nascita|data nascita|anno di nascita|nato il|nata il|\
         nascita",
    ),
    (
        Meaning::BirthPlace,
        "lieu de naissance|lieu naissance|commune naissance|commune de naissance|ville naissance|ville de naissance|\
         pays naissance|pays de naissance|departement de naissance|place of birth|birth place|birth city|city of birth|\
         birth country|country of birth|geburtsort|geburtsland|lugar de nacimiento|pais de nacimiento|luogo di nascita|\
         luogo nascita|comune di nascita|provincia di nascita",
    ),
    (Meaning::Sex, "sexe|civilite|sex|gender|salutation|geschlecht|anrede|sexo|sesso"),
    (
        Meaning::Nationality,
        "nationalite|pays nationalite|citoyennete|nationality|citizenship|nationalitat|staatsangehorigkeit|\
         staatsburgerschaft|nacionalidad|ciudadania|nazionalita|cittadinanza",
    ),
    (Meaning::Age, "age|tranche age|tranche d age|age group|age range|alter|altersgruppe|edad|eta|fascia di eta"),
    (
        Meaning::Profession,
        "profession|metier|emploi|csp|categorie socioprofessionnelle|intitule de poste|intitule poste|job title|occupation|\
         beruf|berufsbezeichnung|profesion|ocupacion|puesto de trabajo|professione|mansione|qualifica professionale",
    ),
    (
        Meaning::MaritalStatus,
        "situation familiale|situation matrimoniale|etat civil|statut marital|statut matrimonial|marital status|\
         civil status|familienstand|zivilstand|estado civil|stato civile",
    ),
    (
        Meaning::Salary,
        "salaire|salaire brut|salaire net|remuneration|revenu fiscal|revenus|salary|gross salary|net salary|wage|wages|\
         income|household income|gehalt|lohn|einkommen|bruttogehalt|salario|sueldo|nomina|ingresos|stipendio|retribuzione|\
         reddito",
    ),
    (
        Meaning::Location,
        "coordonnees gps|gps|latitude|longitude|lat|lon|lng|geolocalisation|geolocation|coordinates|lat lon|lat lng|\
         breitengrad|langengrad|latitud|longitud|latitudine|longitudine",
    ),
    (
        Meaning::NationalId,
        "nir|numero securite sociale|numero de securite sociale|securite sociale|num secu|numero secu|nss|numero insee|\
         numero ss|cni|carte identite|carte d identite|numero identite|piece identite|piece d identite|passeport|\
         numero passeport|ssn|social security|social security number|nino|national insurance|national insurance number|\
         ni number|nhs number|national id|national id number|identity card|id card|passport|passport number|driving licence|\
         drivers license|driver license number|ausweisnummer|personalausweis|personalausweisnummer|passnummer|reisepass|\
         fuhrerschein|sozialversicherungsnummer|sv nummer|svnr|rentenversicherungsnummer|rvnr|ahv|ahv nummer|\
         krankenversichertennummer|dni|nie|pasaporte|cedula|numero de identidad|documento de identidad|seguridad social|\
         numero seguridad social|nuss|carta identita|carta d identita|passaporto|tessera sanitaria|numero inps|bsn|pesel|\
         permis de conduire|numero permis",
    ),
    (
        Meaning::TaxId,
        "numero fiscal|identifiant fiscal|nif|tax id|tax number|tax identification number|itin|steuer id|steuerid|idnr|\
         steueridentifikationsnummer|steuernummer|identificacion fiscal|codice fiscale|cod fiscale",
    ),
    (
        Meaning::CustomerId,
        "matricule|numero client|num client|id client|code client|identifiant client|numero adherent|numero patient|\
         numero salarie|id salarie|id patient|ipp|customer id|customer number|client id|client number|patient id|\
         patient number|employee id|employee number|emp id|member id|member number|student id|person id|personal id|\
         kundennummer|kunden id|kundennr|personalnummer|mitarbeiternummer|patientennummer|mitgliedsnummer|matrikelnummer|\
         numero cliente|id cliente|codigo cliente|numero empleado|id paciente|codice cliente|matricola|numero tessera",
    ),
    (
        Meaning::Iban,
        "iban|rib|bic|compte bancaire|numero de compte|coordonnees bancaires|bank account|bank account number|\
         account number|sort code|bic swift|kontonummer|bankverbindung|cuenta bancaria|numero de cuenta|conto corrente|\
         coordinate bancarie",
    ),
    (
        Meaning::Card,
        "carte bancaire|numero de carte|carte de credit|card number|credit card|credit card number|cc number|cvv|\
         kreditkarte|kartennummer|kreditkartennummer|tarjeta de credito|numero de tarjeta|carta di credito|numero carta",
    ),
    (Meaning::Ip, "ip|adresse ip|ip address|ip addr|client ip|remote addr|remote ip|ip adresse|direccion ip|indirizzo ip"),
    (
        Meaning::Device,
        "mac address|adresse mac|mac adresse|direccion mac|indirizzo mac|imei|imsi|device id|advertising id|idfa|gaid|\
         cookie id|numero de serie|user agent",
    ),
    (
        Meaning::Login,
        "login|username|user name|user login|nom utilisateur|nom d utilisateur|identifiant de connexion|pseudo|pseudonyme|\
         user id|userid|nickname|screen name|benutzername|nutzername|benutzerkennung|nombre de usuario|nombre usuario|\
         nome utente|password|mot de passe|passwort|contrasena",
    ),
    (
        Meaning::Vehicle,
        "immatriculation|plaque immatriculation|plaque d immatriculation|numero immatriculation|license plate|licence plate|\
         number plate|plate number|kennzeichen|kfz kennzeichen|fahrgestellnummer|numero de matricula|matricula vehiculo|\
         targa",
    ),
    (Meaning::Signature, "signature|unterschrift|firma del cliente|firma digital"),
    (
        Meaning::Photo,
        "photo|photo identite|photo d identite|photograph|avatar|profile picture|lichtbild|passbild|foto|fotografia",
    ),
    (
        Meaning::Health,
        "sante|maladie|pathologie|handicap|groupe sanguin|allergie|allergies|grossesse|imc|rqth|cim10|antecedents medicaux|\
         motif hospitalisation|diagnosis|disease|disability|blood type|blood group|medical history|medical condition|\
         pregnant|pregnancy|bmi|icd|icd10|icd code|health condition|health status|krankheit|diagnose|behinderung|\
         schwerbehinderung|blutgruppe|schwangerschaft|enfermedad|discapacidad|grupo sanguineo|embarazo|estado de salud|\
         malattia|diagnosi|disabilita|gruppo sanguigno|gravidanza|stato di salute|arret maladie|sick leave|\
         vaccination status|statut vaccinal",
    ),
    (
        Meaning::Religion,
        "religion|confession religieuse|culte|faith|religious belief|konfession|religionszugehorigkeit|religione",
    ),
    (
        Meaning::Ethnicity,
        "ethnie|origine ethnique|ethnicity|ethnic group|ethnic origin|ethnische herkunft|ethnie|etnia|origen etnico|\
         origine etnica|couleur de peau|skin color",
    ),
    (
        Meaning::Union,
        "syndicat|appartenance syndicale|trade union|union membership|gewerkschaft|gewerkschaftszugehorigkeit|sindicato|\
         afiliacion sindical|sindacato|iscrizione sindacale",
    ),
    (
        Meaning::Political,
        "opinion politique|parti politique|political opinion|political party|political affiliation|party affiliation|\
         politische meinung|parteizugehorigkeit|partido politico|opinion politica|partito politico|opinione politica",
    ),
    (
        Meaning::Orientation,
        "orientation sexuelle|sexual orientation|sexuelle orientierung|orientacion sexual|orientamento sessuale",
    ),
    (
        Meaning::Biometric,
        "empreinte digitale|empreintes|donnees biometriques|donnees genetiques|fingerprint|biometric data|biometrics|\
         genetic data|dna|fingerabdruck|biometrische daten|huella dactilar|impronta digitale",
    ),
    (
        Meaning::Criminal,
        "casier judiciaire|condamnation|infraction penale|criminal record|vorstrafen|fuhrungszeugnis|antecedentes penales|\
         casellario giudiziale",
    ),
    (
        Meaning::Company,
        "entreprise|societe|raison sociale|employeur|nom societe|nom entreprise|nom de la societe|nom de l entreprise|\
         company|company name|employer|organisation|organization|organisation name|firmenname|unternehmen|arbeitgeber|\
         empresa|nombre empresa|nombre de la empresa|razon social|azienda|ragione sociale|nome azienda",
    ),
    (
        Meaning::CompanyId,
        "siren|siret|tva|numero tva|tva intracommunautaire|vat number|vat id|company number|ust id|ust idnr|\
         handelsregisternummer|cif|partita iva|p iva|piva",
    ),
    (
        Meaning::Note,
        "commentaire|commentaires|remarque|remarques|observations|comment|comments|remarks|free text|kommentar|bemerkung|\
         bemerkungen|notizen|anmerkung|anmerkungen|freitext|comentario|comentarios|observaciones|commento|commenti|\
         osservazioni|annotazioni",
    ),
];

/// Phrases that mean this alone, or beside words of persons and of numbering.
pub(super) const WEAK: &[(Meaning, &str)] = &[
    (Meaning::LastName, "nom|noms|last"),
    (Meaning::FirstName, "nombre|nombres|nome|first|given"),
    (
        Meaning::FullName,
        "name|names|beneficiaire|titulaire|salarie|contact|employee|mitarbeiter|titular|empleado|person|personne|patient",
    ),
    (Meaning::Phone, "mobile|fixe|cell|mobil|movil|fijo|recapito"),
    (Meaning::Address, "adr"),
    (Meaning::Street, "via"),
    (Meaning::City, "ort|comune|poblacion"),
    (Meaning::Postcode, "cp|cap|zip"),
    (Meaning::BirthDate, "born|birth|geb"),
    (Meaning::Sex, "genre|genero|genere|tratamiento"),
    (Meaning::NationalId, "insee|secu|ni|ahv|documento|numero documento|id number|afiliacion|previdenza"),
    (Meaning::TaxId, "cf|spi|tin|utr"),
    (Meaning::CompanyId, "ein"),
    (Meaning::CustomerId, "matricula"),
    (Meaning::Iban, "konto|cuenta|conto|ccc|swift"),
    (Meaning::Card, "cb|pan|tarjeta|carta"),
    (Meaning::Login, "identifiant|utilisateur|user|compte|account|handle|benutzer|kennung|usuario|alias|utente"),
    (Meaning::Photo, "picture|bild|portrait"),
    (Meaning::Vehicle, "plaque|plate|vin"),
    (Meaning::Criminal, "conviction"),
    (Meaning::Profession, "job"),
    (
        Meaning::Health,
        "diagnostic|traitement|health|treatment|medication|medicament|symptoms|salud|salute|gesundheit|diagnostico|allergy",
    ),
    (Meaning::Ethnicity, "race|raza|razza|herkunft"),
    (Meaning::Religion, "confession"),
    (Meaning::Company, "firma"),
    (Meaning::Note, "note|notes|memo|notiz|hinweis|notas|nota|description|motif"),
];

/// Words beside which a phrase of many meanings is about a person, or which add nothing.
pub(super) const ROLES: &str = "\
    client cliente customer kunde kunden patient patiente paciente paziente salarie employe employee emp mitarbeiter
    empleado dipendente agent user utilisateur benutzer usuario utente person personne persona personal contact contacto
    contatto kontakt member membre adherent mitglied student etudiant eleve schuler alumno studente teacher author auteur
    autor autore owner proprietaire titulaire titular holder inhaber beneficiaire beneficiary assure versicherter insured
    conjoint spouse partner enfant child kind mother father mere pere parent guardian responsable manager doctor medecin
    arzt medico passenger passager driver conducteur tenant locataire candidat candidate applicant bewerber buyer acheteur
    seller vendeur recipient destinataire sender expediteur guest invite subscriber abonne participant witness temoin
    billing shipping home private prive perso pro work bureau secondaire principal usuel legal numero number num no nr n
    nummer code valeur value field champ col column txt str le la les de du des d l of the der die das del della di il el";

/// Words of other things and of facts about a value.
pub(super) const APART: &str = "\
    produit produits product products fichier fichiers file files filename host hostname table tabelle tabla tabella
    column colonne spalte artikel article item prodotto producto event evenement campaign campagne campana server serveur
    domain domaine database base schema brand marque model modele modello version template format project projet projekt
    proyecto progetto tag category categorie kategorie categoria service department abteilung class classe function
    variable parameter layer theme count counts nb nbre total totals sum avg average mean moyen moyenne median max min
    ratio rate taux pourcentage percent anzahl cantidad quantite date datum fecha time heure timestamp day jour month mois
    created updated modified sent received opened clicked verified valid validated status statut state etat type typ tipo
    flag is has can opt optin consent consentement required length size hash url link lien subject objet body message
    provider operator operateur prefix prefixe extension channel canal score weight index rank cost price prix amount
    montant prime last first dernier derniere letzter letzte ultimo ultima attempts failed tentatives";

/// Those of them that leave a value what it is where it tells something of a person, as in `type_handicap` and `is_pregnant`.
pub(super) const NEAR: &str = "\
    type typ tipo status statut state category categorie kategorie categoria class classe is has flag amount montant month
    mois";
