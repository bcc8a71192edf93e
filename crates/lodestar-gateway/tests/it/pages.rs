//! Pages of the reference that come from this crate are those of the code.

fn is_published(file: &str, now: &str) {
    let path = format!("{}/../../docs/reference/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("LODESTAR_BLESS").is_some() {
        std::fs::write(&path, now).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == now,
        "{file}: run the tests with LODESTAR_BLESS=1, then look at the difference"
    );
}

#[test]
fn the_published_codes_are_those_of_the_code() {
    is_published(
        "gateway-codes.md",
        &lodestar_gateway::code::reference_page(),
    );
}

#[test]
fn the_published_api_is_that_of_the_routes() {
    let document = lodestar_gateway::openapi::document();
    let written = serde_json::to_string_pretty(&document).unwrap() + "\n";
    is_published("gateway.openapi.json", &written);
    is_published(
        "gateway-api.md",
        &lodestar_gateway::openapi::reference_page(),
    );
}
