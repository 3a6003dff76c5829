//! Ways to write where requests must not go, for tests here and those of the whole proxy.

/// This machine and its networks, as addresses that everybody can read.
pub(crate) const OWN_ADDRESSES: &[&str] = &[
    "127.0.0.1",
    "127.255.255.254",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::127.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:7F00:1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:a00:1::1]",
    "[fc00::1]",
    "[fec0::1]",
];

/// This machine, in ways that only whoever looks names up can read.
pub(crate) const OWN_FORMS: &[&str] = &[
    "localhost",
    "LocalHost",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0X7F000001",
    "0x7f.0.0.1",
    "0x7f.1",
    "017700000001",
    "0177.0.0.1",
    "0177.0x0.1",
];

/// Where nobody ever is to be asked, such as where clouds answer machines about themselves, as addresses that everybody can
/// read.
pub(crate) const BARRED_ADDRESSES: &[&str] = &[
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "[::]",
    "[0:0:0:0:0:0:0:0]",
    "[::169.254.169.254]",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[::ffff:0.0.0.0]",
    "[64:ff9b::169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "[ff02::1]",
];

/// The same, in ways that only whoever looks names up can read.
pub(crate) const BARRED_FORMS: &[&str] = &[
    "2852039166",
    "0xa9fea9fe",
    "0xa9.0xfe.0xa9.0xfe",
    "0251.0376.0251.0376",
    "025177524776",
    "169.16689662",
    "169.254.43518",
    "169.254.0xa9fe",
    "1684301000",
    "0",
    "0.0",
    "0x0",
];
