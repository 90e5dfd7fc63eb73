//! Whose session it is, by the line of log_connections.

use super::record::named;
use crate::model::LogSession;

/// What stands before the user, the database and the application, in the languages that the server has.
const USER: [&str; 9] = [
    "user=",
    "ユーザー=",
    "Benutzer=",
    "usuario=",
    "utilisateur=",
    "მომხმარებელი=",
    "пользователь=",
    "användare=",
    "користувач=",
];
const DATABASE: [&str; 9] = [
    " database=",
    " データベース=",
    " Datenbank=",
    " base_de_datos=",
    " base de données ",
    " ბაზა=",
    " база=",
    "databas=",
    " 数据库=",
];
const APPLICATION: [&str; 5] = [
    " application_name=",
    " nombre_de_aplicación=",
    " აპლიკაციის_სახელი=",
    " приложение=",
    " applikationsnamn=",
];
/// What follows besides those.
const OTHERS: [&str; 4] = [" SSL ", " GSS ", " host=", " ホスト="];

/// `connection authorized: user=a database=b application_name=c`
pub fn authorized(message: &str) -> LogSession {
    let value = |words: &[&str]| {
        let (from, word) = words
            .iter()
            .find_map(|word| Some((message.find(word)?, word)))?;
        let rest = &message[from + word.len()..];
        let end = [&DATABASE[..], &APPLICATION, &OTHERS]
            .concat()
            .iter()
            .filter_map(|next| rest.find(next))
            .min()
            .unwrap_or(rest.len());
        named(&rest[..end])
    };
    let (user, database) = (value(&USER), value(&DATABASE));
    if user.is_none() || database.is_none() {
        return LogSession::default();
    }
    LogSession {
        user,
        database,
        application_name: value(&APPLICATION),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_of_several_languages() {
        let cases = [
            (
                "connection authorized: user=app database=my shop application_name=my app",
                Some("my app"),
            ),
            (
                "connection authorized: user=app database=my shop application_name=my app SSL enabled (protocol=TLSv1.3)",
                Some("my app"),
            ),
            (
                "接続の認証完了: ユーザー=app データベース=my shop application_name=my app",
                Some("my app"),
            ),
            (
                "Verbindung autorisiert: Benutzer=app Datenbank=my shop application_name=my app",
                Some("my app"),
            ),
            (
                "connexion autorisée : utilisateur=app base de données my shop application_name=my app",
                Some("my app"),
            ),
            (
                "подключение авторизовано: пользователь=app база=my shop приложение=my app",
                Some("my app"),
            ),
            (
                "disconnection: session time: 0:00:00.426 user=app database=my shop host=127.0.0.1 port=5",
                None,
            ),
            (
                "接続を切断: セッション時間: 0:00:00.426 ユーザー=app データベース=my shop ホスト=127.0.0.1 port=5",
                None,
            ),
        ];
        for (message, application) in cases {
            let session = authorized(message);
            assert_eq!(session.user.as_deref(), Some("app"), "{message}");
            assert_eq!(session.database.as_deref(), Some("my shop"), "{message}");
            assert_eq!(
                session.application_name.as_deref(),
                application,
                "{message}"
            );
        }
        for message in [
            "user=app",
            "statement: select 1",
            "connection received: host=[local]",
        ] {
            assert_eq!(authorized(message), LogSession::default(), "{message}");
        }
    }
}
