//! Certificates of all the kinds that servers in the field have, made by openssl.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A folder of certificates and keys.
pub struct Pki(TempDir);

impl Pki {
    /// `ca`, `other-ca`; servers: `server`, `wrong-host`, `cn-only`, `wildcard`, `v1`, `self-signed`, `expired`, `chain`,
    /// `revoked`; clients: `client`, `stranger`; `crl.pem`, `none.pem`.
    pub fn new() -> Self {
        let pki = Self(tempfile::tempdir().expect("a folder"));
        for ca in ["ca", "other-ca"] {
            pki.root(ca);
        }
        pki.signed(
            "server",
            "ca",
            "/CN=somebody",
            "subjectAltName=DNS:localhost,DNS:db.example,IP:127.0.0.1",
        );
        pki.signed(
            "wrong-host",
            "ca",
            "/CN=localhost",
            "subjectAltName=DNS:other.example",
        );
        pki.signed(
            "cn-only",
            "ca",
            "/CN=localhost",
            "basicConstraints=CA:FALSE",
        );
        pki.signed("wildcard", "ca", "/CN=x", "subjectAltName=DNS:*.example");
        pki.signed(
            "revoked",
            "ca",
            "/CN=localhost",
            "subjectAltName=DNS:localhost",
        );
        pki.signed("client", "ca", "/CN=cert_user", "basicConstraints=CA:FALSE");
        pki.signed(
            "stranger",
            "other-ca",
            "/CN=cert_user",
            "basicConstraints=CA:FALSE",
        );
        // Without extensions it is one of version 1.
        pki.request("v1", "/CN=localhost");
        pki.openssl(
            "x509 -req -in v1.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out v1.crt",
        );
        pki.request("expired", "/CN=localhost");
        fs::write(pki.path("expired.ext"), "subjectAltName=DNS:localhost").expect("a file");
        pki.openssl("x509 -req -in expired.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days -1 -extfile expired.ext -out expired.crt");
        // As the manual of PostgreSQL makes one.
        pki.openssl("req -new -x509 -days 30 -nodes -newkey rsa:2048 -subj /CN=localhost -keyout self-signed.key -out self-signed.crt");
        pki.signed(
            "middle",
            "ca",
            "/CN=middle",
            "basicConstraints=critical,CA:TRUE",
        );
        pki.signed(
            "chain",
            "middle",
            "/CN=localhost",
            "subjectAltName=DNS:localhost",
        );
        let whole = ["chain.crt", "middle.crt"]
            .map(|name| fs::read_to_string(pki.path(name)).expect("a certificate"));
        fs::write(pki.path("chain.crt"), whole.concat()).expect("a file");
        pki.openssl("pkcs8 -topk8 -in client.key -passout pass:hunter2 -out client-locked.key");
        pki.openssl("rsa -in client.key -outform DER -out client.der");
        // The same authority, whose time is over; and a certificate that is no authority's.
        fs::write(pki.path("ca.ext"), "basicConstraints=critical,CA:TRUE").expect("a file");
        pki.openssl("req -new -key ca.key -subj /CN=ca -out ca-expired.csr");
        pki.openssl("x509 -req -in ca-expired.csr -signkey ca.key -days -1 -extfile ca.ext -out ca-expired.crt");
        pki.openssl("req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=no-ca -addext basicConstraints=critical,CA:FALSE -keyout no-ca.key -out no-ca.crt");
        pki.signed(
            "by-no-ca",
            "no-ca",
            "/CN=localhost",
            "subjectAltName=DNS:localhost",
        );
        pki.revocations();
        for entry in fs::read_dir(pki.0.path()).expect("the folder").flatten() {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o600)).expect("a mode");
        }
        fs::copy(pki.path("client.key"), pki.path("client-open.key")).expect("a copy");
        fs::set_permissions(
            pki.path("client-open.key"),
            fs::Permissions::from_mode(0o644),
        )
        .expect("a mode");
        pki
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    fn openssl(&self, line: &str) {
        let output = Command::new("openssl")
            .args(line.split(' '))
            .current_dir(self.0.path())
            .output()
            .expect("openssl runs");
        let says = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {line}: {says}");
    }

    fn root(&self, name: &str) {
        self.openssl(&format!(
            "req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN={name} -addext basicConstraints=critical,CA:TRUE \
             -keyout {name}.key -out {name}.crt"
        ));
    }

    fn request(&self, name: &str, subject: &str) {
        self.openssl(&format!(
            "req -new -newkey rsa:2048 -nodes -subj {subject} -keyout {name}.key -out {name}.csr"
        ));
    }

    fn signed(&self, name: &str, ca: &str, subject: &str, extension: &str) {
        self.request(name, subject);
        fs::write(self.path(&format!("{name}.ext")), extension).expect("a file");
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA {ca}.crt -CAkey {ca}.key -CAcreateserial -days 30 -extfile {name}.ext -out {name}.crt"
        ));
    }

    fn revocations(&self) {
        let config = "[ca]\ndefault_ca=own\n[own]\ndatabase=index\ncrlnumber=number\ndefault_md=sha256\ndefault_crl_days=30\n";
        fs::write(self.path("ca.conf"), config).expect("a file");
        fs::write(self.path("index"), "").expect("a file");
        fs::write(self.path("number"), "01\n").expect("a file");
        let ca = "ca -config ca.conf -cert ca.crt -keyfile ca.key";
        self.openssl(&format!("{ca} -gencrl -out none.pem"));
        self.openssl(&format!(
            "{ca} -gencrl -crl_lastupdate 20200101000000Z -crl_nextupdate 20200201000000Z -out old.pem"
        ));
        self.openssl(&format!("{ca} -revoke revoked.crt"));
        self.openssl(&format!("{ca} -revoke v1.crt"));
        self.openssl(&format!("{ca} -gencrl -out crl.pem"));
    }
}
