//! Signatures against those that AWS has published.

use super::*;

const TOKEN_OF_THE_SUITE: &str = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";

fn credentials(token: &'static str) -> Credentials {
    let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned();
    Credentials { id: "AKIDEXAMPLE".to_owned(), secret, token: HeaderValue::from_static(token), until: None }
}

fn scope() -> Scope {
    Scope { region: "us-east-1".into(), service: "service".into() }
}

fn then() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_440_938_160).unwrap()
}

fn headers(headers: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in [("host", "example.amazonaws.com")].iter().chain(headers) {
        map.append(*name, HeaderValue::from_static(value));
    }
    map
}

/// Verb, address, headers and body of a request, and its signature.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str, &'static str);

/// Vectors that AWS has published (aws-sig-v4-test-suite).
#[test]
fn signatures_are_those_that_aws_has_published() {
    let rows: [Row; 16] = [
        ("GET", "/", &[], "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("GET", "/./", &[], "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("GET", "//", &[], "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("GET", "/example/..", &[], "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        (
            "GET",
            "/example1/example2/../..",
            &[],
            "",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        ("GET", "/./example", &[], "", "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5"),
        ("GET", "//example//", &[], "", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
        (
            "GET",
            "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            &[],
            "",
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
        ),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            &[],
            "",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "GET",
            "/?Param1=value2&Param1=value1",
            &[],
            "",
            "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694",
        ),
        ("GET", "/?%E1%88%B4=bar", &[], "", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
        (
            "GET",
            "/",
            &[("my-header1", "value4"), ("my-header1", "value1"), ("my-header1", "value3"), ("my-header1", "value2")],
            "",
            "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
        ),
        (
            "GET",
            "/",
            &[("my-header1", " value1"), ("my-header2", "\"a   b   c\"")],
            "",
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
        ),
        ("POST", "/", &[], "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "POST",
            "/",
            &[("content-type", "application/x-www-form-urlencoded")],
            "Param1=value1",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        (
            "GET",
            "/",
            &[("x-amz-security-token", TOKEN_OF_THE_SUITE)],
            "",
            "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8",
        ),
    ];
    for (method, path, given, body, expected) in rows {
        let uri = format!("https://example.amazonaws.com{path}").parse().unwrap();
        let mut headers = headers(given);
        let method = method.parse().unwrap();
        let credentials = credentials("unused");
        let signed = authorization(&credentials, &scope(), then(), &method, &uri, &mut headers, body.as_bytes());
        assert_eq!(signed.rsplit('=').next(), Some(expected), "{method} {path} {given:?}: {signed}");
    }
}

#[test]
fn auth_trap_20_what_others_may_change_is_not_signed_and_nobody_else_signs() {
    let signer = Signer { credentials: Arc::new(credentials("session")), scope: scope(), given_for: Key::ours() };
    let uri: Uri = "https://example.amazonaws.com/mcp".parse().unwrap();
    let sent = |given: &[(&'static str, &'static str)]| {
        let mut headers = headers(given);
        signer.sign_at(then(), &Method::POST, &uri, &mut headers, b"{}");
        headers
    };
    let plain = sent(&[]);
    assert_eq!((&plain[DATE], &plain[TOKEN]), (&"20150830T123600Z".parse().unwrap(), &"session".parse().unwrap()));
    assert!(plain[AUTHORIZATION].to_str().unwrap().contains("SignedHeaders=host;x-amz-date;x-amz-security-token,"));
    for header in [
        ("x-forwarded-for", "10.0.0.7"),
        ("x-forwarded-host", "proxy"),
        ("x-forwarded-proto", "https"),
        ("x-real-ip", "10.0.0.7"),
        ("forwarded", "for=10.0.0.7"),
        ("authorization", "Bearer the caller's own"),
        ("x-amz-date", "19700101T000000Z"),
        ("x-amz-security-token", "somebody else's"),
        ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
    ] {
        let headers = sent(&[header]);
        assert_eq!(headers[AUTHORIZATION], plain[AUTHORIZATION], "{header:?}");
        assert!(!headers.contains_key(BODY_HASH));
    }
    assert_ne!(sent(&[("x-amz-target", "t")])[AUTHORIZATION], plain[AUTHORIZATION]);
}

#[test]
fn addresses_are_written_in_one_way() {
    for (path, expected) in [
        ("/", "/"),
        ("/mcp", "/mcp"),
        ("/a%2Fb/c%20d", "/a%252Fb/c%2520d"),
        ("/a/./b/../c/", "/a/c/"),
        ("/a/b/..", "/a"),
        ("/../..", "/"),
    ] {
        assert_eq!(canonical_path(path), expected, "{path}");
    }
    for (query, expected) in [
        ("", ""),
        ("b&a=1", "a=1&b="),
        ("a=1=2", "a=1%3D2"),
        ("q=a+b", "q=a%2Bb"),
        ("q=a%20b&q=a%2fb", "q=a%20b&q=a%2Fb"),
        ("q=%zz%", "q=%25zz%25"),
    ] {
        assert_eq!(canonical_query(query), expected, "{query}");
    }
}
