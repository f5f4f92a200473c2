//! A certificate that its own key has signed, made when the tests run. Its private key is the number 1, so there is no
//! secret in the tree, and nothing that expires.

use std::sync::{Arc, LazyLock};

use rustls::{
    ClientConfig, RootCertStore, ServerConfig, SignatureScheme,
    crypto::ring::{default_provider, sign::any_ecdsa_type},
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// The name in the certificate.
pub const NAME: &str = "weir.test";

/// The base point of P-256 (SEC 2, 2.4.2), which is the public key of the private key 1.
const PUBLIC_KEY: [u8; 65] = [
    0x04, 0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40, 0xf2,
    0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2, 0x96, 0x4f,
    0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e, 0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e, 0x16, 0x2b, 0xce,
    0x33, 0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51, 0xf5,
];

// Tags of DER (X.690, 8.1.2).
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const CONTEXT_0: u8 = 0xa0;
const CONTEXT_1: u8 = 0xa1;
const CONTEXT_3: u8 = 0xa3;
/// A name of a host in a subject alternative name (RFC 5280, 4.2.1.6).
const DNS_NAME: u8 = 0x82;

// Object identifiers (RFC 5480, RFC 5758, RFC 5280).
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// A value in DER: tag, length, contents.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    let mut out = vec![tag];
    match u16::try_from(contents.len()).expect("a certificate is short").to_be_bytes() {
        [0, low @ ..0x80] => out.push(low),
        [0, low] => out.extend([0x81, low]),
        [high, low] => out.extend([0x82, high, low]),
    }
    out.extend_from_slice(&contents);
    out
}

fn algorithm(identifiers: &[&[u8]]) -> Vec<u8> {
    let parts: Vec<Vec<u8>> = identifiers.iter().map(|bytes| der(OBJECT_IDENTIFIER, &[bytes])).collect();
    der(SEQUENCE, &[&parts.concat()])
}

/// RFC 5208 and RFC 5915.
fn private_key() -> PrivateKeyDer<'static> {
    let mut number = [0; 32];
    number[31] = 1;
    let public = der(CONTEXT_1, &[&der(BIT_STRING, &[&[0], &PUBLIC_KEY])]);
    let key = der(SEQUENCE, &[&der(INTEGER, &[&[1]]), &der(OCTET_STRING, &[&number]), &public]);
    let parts = [der(INTEGER, &[&[0]]), algorithm(&[EC_PUBLIC_KEY, P256]), der(OCTET_STRING, &[&key])];
    PrivatePkcs8KeyDer::from(der(SEQUENCE, &[&parts.concat()])).into()
}

/// RFC 5280.
fn certificate(key: &PrivateKeyDer<'_>) -> CertificateDer<'static> {
    let common_name =
        [der(OBJECT_IDENTIFIER, &[COMMON_NAME]), der(UTF8_STRING, &[b"a test of Weir"])].concat();
    let name = der(SEQUENCE, &[&der(SET, &[&der(SEQUENCE, &[&common_name])])]);
    let validity =
        [der(UTC_TIME, &[b"700101000000Z"]), der(GENERALIZED_TIME, &[b"99991231235959Z"])].concat();
    let names = der(SEQUENCE, &[&der(DNS_NAME, &[NAME.as_bytes()])]);
    let extension =
        [der(OBJECT_IDENTIFIER, &[SUBJECT_ALTERNATIVE_NAME]), der(OCTET_STRING, &[&names])].concat();
    let contents = der(
        SEQUENCE,
        &[
            &der(CONTEXT_0, &[&der(INTEGER, &[&[2]])]),
            &der(INTEGER, &[&[1]]),
            &algorithm(&[ECDSA_WITH_SHA256]),
            &name,
            &der(SEQUENCE, &[&validity]),
            &name,
            &der(SEQUENCE, &[&algorithm(&[EC_PUBLIC_KEY, P256]), &der(BIT_STRING, &[&[0], &PUBLIC_KEY])]),
            &der(CONTEXT_3, &[&der(SEQUENCE, &[&der(SEQUENCE, &[&extension])])]),
        ],
    );
    let signer = any_ecdsa_type(key).expect("a key of P-256");
    let signer = signer.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256]).expect("its only scheme");
    let signature = signer.sign(&contents).expect("it can sign");
    let parts = [contents, algorithm(&[ECDSA_WITH_SHA256]), der(BIT_STRING, &[&[0], &signature])];
    der(SEQUENCE, &[&parts.concat()]).into()
}

static CONFIGS: LazyLock<(Arc<ServerConfig>, Arc<ClientConfig>)> = LazyLock::new(|| {
    let provider = Arc::new(default_provider());
    let key = private_key();
    let certificate = certificate(&key);
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a certificate");
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("the key belongs to the certificate");
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
});

/// A server with the certificate.
pub fn server_config() -> Arc<ServerConfig> {
    Arc::clone(&CONFIGS.0)
}

/// A client that trusts it.
pub fn client_config() -> Arc<ClientConfig> {
    Arc::clone(&CONFIGS.1)
}
