#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skep_fuzz::run("mcp_translate", input));
