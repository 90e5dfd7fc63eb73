//! The kinds of likely secrets, their stable names, and the words for a reader.

/// Why a piece of text is taken for a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    UrlPassword,
    ConninfoPassword,
    PgpasswordEnv,
    PgpassLine,
    PrivateKey,
    Jwt,
    AwsKey,
    GithubToken,
    SlackToken,
    StripeKey,
    GoogleKey,
    VendorToken,
    Bearer,
    BasicAuth,
    KeyValueSecret,
    ScramVerifier,
    Md5RoleHash,
    CardNumber,
    Ssn,
    Email,
    RowData,
    Uuid,
    HighEntropy,
}

impl Rule {
    /// All of them, in the order of this list.
    pub const ALL: [Rule; 23] = [
        Rule::UrlPassword,
        Rule::ConninfoPassword,
        Rule::PgpasswordEnv,
        Rule::PgpassLine,
        Rule::PrivateKey,
        Rule::Jwt,
        Rule::AwsKey,
        Rule::GithubToken,
        Rule::SlackToken,
        Rule::StripeKey,
        Rule::GoogleKey,
        Rule::VendorToken,
        Rule::Bearer,
        Rule::BasicAuth,
        Rule::KeyValueSecret,
        Rule::ScramVerifier,
        Rule::Md5RoleHash,
        Rule::CardNumber,
        Rule::Ssn,
        Rule::Email,
        Rule::RowData,
        Rule::Uuid,
        Rule::HighEntropy,
    ];

    /// A stable word, for reports and for what is allowed by name.
    pub fn name(self) -> &'static str {
        match self {
            Rule::UrlPassword => "url-password",
            Rule::ConninfoPassword => "conninfo-password",
            Rule::PgpasswordEnv => "pgpassword-env",
            Rule::PgpassLine => "pgpass-line",
            Rule::PrivateKey => "private-key",
            Rule::Jwt => "jwt",
            Rule::AwsKey => "aws-key",
            Rule::GithubToken => "github-token",
            Rule::SlackToken => "slack-token",
            Rule::StripeKey => "stripe-key",
            Rule::GoogleKey => "google-key",
            Rule::VendorToken => "vendor-token",
            Rule::Bearer => "bearer",
            Rule::BasicAuth => "basic-auth",
            Rule::KeyValueSecret => "key-value-secret",
            Rule::ScramVerifier => "scram-verifier",
            Rule::Md5RoleHash => "md5-role-hash",
            Rule::CardNumber => "card-number",
            Rule::Ssn => "ssn",
            Rule::Email => "email",
            Rule::RowData => "row-data",
            Rule::Uuid => "uuid",
            Rule::HighEntropy => "high-entropy",
        }
    }

    /// What it is, for a person: stands in place of the value.
    pub fn words(self) -> &'static str {
        match self {
            Rule::UrlPassword => "a password in a URL",
            Rule::ConninfoPassword => "a password of a connection string",
            Rule::PgpasswordEnv => "a password of the environment",
            Rule::PgpassLine => "a line of a password file",
            Rule::PrivateKey => "a private key",
            Rule::Jwt => "a JSON web token",
            Rule::AwsKey => "an AWS key",
            Rule::GithubToken => "a GitHub token",
            Rule::SlackToken => "a Slack token",
            Rule::StripeKey => "a Stripe key",
            Rule::GoogleKey => "a Google key",
            Rule::VendorToken => "a service's token",
            Rule::Bearer => "a bearer token",
            Rule::BasicAuth => "a login",
            Rule::KeyValueSecret => "a secret value",
            Rule::ScramVerifier => "a SCRAM verifier",
            Rule::Md5RoleHash => "an MD5 password hash",
            Rule::CardNumber => "a card number",
            Rule::Ssn => "a social security number",
            Rule::Email => "an e-mail address",
            Rule::RowData => "values of a row",
            Rule::Uuid => "a UUID",
            Rule::HighEntropy => "what looks like a token",
        }
    }

    /// It opens something, as opposed to what is somebody's (an address, a row) and to what only looks random.
    pub(super) fn is_credential(self) -> bool {
        !matches!(
            self,
            Rule::CardNumber
                | Rule::Ssn
                | Rule::Email
                | Rule::RowData
                | Rule::Uuid
                | Rule::HighEntropy
        )
    }

    /// Its shape alone tells it, also within a name.
    pub(super) fn is_unmistakable(self) -> bool {
        !matches!(
            self,
            Rule::KeyValueSecret
                | Rule::PgpassLine
                | Rule::Bearer
                | Rule::CardNumber
                | Rule::Ssn
                | Rule::Email
                | Rule::RowData
                | Rule::Uuid
                | Rule::HighEntropy
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case_and_differ() {
        let mut names: Vec<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        for name in &names {
            assert!(
                name.bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{name}"
            );
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Rule::ALL.len());
    }

    #[test]
    fn what_stands_in_place_of_a_value_is_no_hit_itself() {
        for rule in Rule::ALL {
            for mark in ["", ", 3fa1", ", 0123"] {
                let text = format!("(not shown: {}{mark})", rule.words());
                assert_eq!(super::super::detect(&text), None, "{text}");
                assert_eq!(super::super::detect_named(&text), None, "{text}");
                let keyed = format!("password={text}");
                assert_eq!(super::super::detect(&keyed), None, "{keyed}");
                assert_eq!(super::super::detect_named(&keyed), None, "{keyed}");
            }
        }
    }
}
