//! Whether a certificate is made out to a host, by libpq's rules (PostgreSQL 15 and newer): any matching entry of the
//! alternative names; the common name only where there is no alternative name of the host's kind.

use std::net::IpAddr;

use x509_cert::Certificate;
use x509_cert::der::asn1::{Ia5StringRef, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// The host is one of the names in the certificate.
pub fn made_out_to(certificate: &Certificate, host: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    let mut common_name_counts = true;
    for name in alternative_names(certificate) {
        match &name {
            GeneralName::DnsName(name) => {
                common_name_counts &= address.is_some();
                if names_host(name.as_str(), host) {
                    return true;
                }
            }
            GeneralName::IpAddress(octets) => {
                common_name_counts &= address.is_none();
                if address.is_some_and(|address| is_address(octets.as_bytes(), address)) {
                    return true;
                }
            }
            _ => {}
        }
    }
    common_name_counts && common_name(certificate).is_some_and(|name| names_host(&name, host))
}

fn alternative_names(certificate: &Certificate) -> Vec<GeneralName> {
    match certificate.tbs_certificate.get::<SubjectAltName>() {
        Ok(Some((_, names))) => names.0,
        _ => Vec::new(),
    }
}

fn is_address(octets: &[u8], address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => octets == v4.octets(),
        IpAddr::V6(v6) => octets == v6.octets(),
    }
}

fn common_name(certificate: &Certificate) -> Option<String> {
    let value = certificate
        .tbs_certificate
        .subject
        .0
        .iter()
        .flat_map(|names| names.0.iter())
        .find(|attribute| attribute.oid == COMMON_NAME)
        .map(|attribute| &attribute.value)?;
    if let Ok(text) = value.decode_as::<Utf8StringRef<'_>>() {
        return Some(text.as_str().to_owned());
    }
    if let Ok(text) = value.decode_as::<PrintableStringRef<'_>>() {
        return Some(text.as_str().to_owned());
    }
    if let Ok(text) = value.decode_as::<TeletexStringRef<'_>>() {
        return Some(text.as_str().to_owned());
    }
    value
        .decode_as::<Ia5StringRef<'_>>()
        .ok()
        .map(|text| text.as_str().to_owned())
}

/// `db.example` is itself, `*.example` is one more label to the left. A zero byte in a name is somebody's trick.
fn names_host(name: &str, host: &str) -> bool {
    if name.contains('\0') {
        return false;
    }
    if name.eq_ignore_ascii_case(host) {
        return true;
    }
    let (Some(domain), Some((label, rest))) = (name.strip_prefix("*."), host.split_once('.'))
    else {
        return false;
    };
    !label.is_empty() && rest.eq_ignore_ascii_case(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_one_label() {
        for (name, host, want) in [
            ("db.example", "DB.example", true),
            ("*.example", "db.example", true),
            ("*.example", "a.db.example", false),
            ("*.example", "example", false),
            ("*", "db", false),
            ("d*.example", "db.example", false),
            ("db.example\0.evil", "db.example", false),
            ("127.0.0.1", "127.0.0.1", true),
        ] {
            assert_eq!(names_host(name, host), want, "{name} {host}");
        }
    }
}
