//! A drop directory that somebody fills: what is genuine is shown all the same, and what is not is told.

use lodestar_core::id::RequestId;

use super::*;

fn as_signed(mut announcement: Announcement) -> Announcement {
    let request = &mut announcement.request;
    request.card.action.fingerprint = request.card.fingerprint().unwrap();
    request.card_digest = request.digest().unwrap();
    announcement
}

/// The same under another id.
fn numbered(announcement: &Announcement, n: u64) -> Announcement {
    let mut other = announcement.clone();
    other.request.id = RequestId::from_parts(n, [1; 10]);
    as_signed(other)
}

/// The same with so many bytes in it.
fn heavy(announcement: &Announcement, n: u64, bytes: usize) -> Announcement {
    let mut other = announcement.clone();
    let arguments = &mut other.request.card.action.arguments;
    arguments.insert("text".to_owned(), json!("x".repeat(bytes)));
    numbered(&other, n)
}

fn put(root: &Path, announcement: &Announcement, padded_to: usize) {
    let request = &announcement.request;
    let place = folder(root, request.session.as_str());
    fs::create_dir_all(&place).unwrap();
    let mut text = serde_json::to_vec(announcement).unwrap();
    text.resize(text.len().max(padded_to), b' ');
    fs::write(place.join(format!("{}.request.json", request.id)), text).unwrap();
}

fn shown(pile: &Pile) -> Vec<RequestId> {
    let ids = pile.requests().map(|shown| shown.announcement().request.id);
    ids.collect()
}

#[tokio::test]
async fn files_that_are_filled_up_with_blanks_take_no_room_from_others() {
    let (announcement, scratch) = announcement().await;
    let mut pile = Pile::unseen(scratch.path());
    for n in [1, 2] {
        put(scratch.path(), &numbered(&announcement, n), 64 << 20);
        pile.refresh().unwrap();
    }
    put(scratch.path(), &numbered(&announcement, 3), 0);
    pile.refresh().unwrap();
    assert_eq!(pile.requests().count(), 3);
    assert!(!pile.is_behind());
}

#[tokio::test]
async fn the_largest_makes_room_for_a_smaller_one_and_is_back_when_there_is_room() {
    let (announcement, scratch) = announcement().await;
    let larger = heavy(&announcement, 1, 63 << 20);
    let large = heavy(&announcement, 2, 62 << 20);
    let small = heavy(&announcement, 3, 4 << 20);
    let ids = [&larger, &large, &small].map(|one| one.request.id);
    let mut pile = Pile::unseen(scratch.path());
    put(scratch.path(), &larger, 0);
    put(scratch.path(), &large, 0);
    pile.refresh().unwrap();
    assert_eq!(shown(&pile), ids[..2]);
    put(scratch.path(), &small, 0);
    for _ in 0..2 {
        pile.refresh().unwrap();
        assert_eq!(shown(&pile), ids[1..]);
        let (id, _, why) = pile.unusable().next().unwrap();
        assert_eq!((id, why), (ids[0], &Unusable::Later));
        assert!(!pile.is_behind(), "it is not read again and again");
    }
    let place = folder(scratch.path(), large.request.session.as_str());
    fs::remove_file(place.join(format!("{}.request.json", ids[1]))).unwrap();
    pile.refresh().unwrap();
    assert_eq!(shown(&pile), [ids[0], ids[2]]);
}

#[tokio::test]
async fn very_many_empty_folders_are_told_of_and_hide_nothing_for_long() {
    let (announcement, scratch) = announcement().await;
    let approvals = DropDirectory::path_below(scratch.path());
    fs::create_dir_all(&approvals).unwrap();
    for n in 0..25_000 {
        fs::create_dir(approvals.join(format!("s-{n:05}"))).unwrap();
    }
    // Where the system lists it late.
    let late = fs::read_dir(&approvals).unwrap().nth(15_000).unwrap();
    let late = late.unwrap().file_name().into_string().unwrap();
    let mut genuine = announcement;
    genuine.request.session = late.parse().unwrap();
    put(scratch.path(), &as_signed(genuine), 0);

    let mut pile = Pile::unseen(scratch.path());
    pile.refresh().unwrap();
    assert_eq!(pile.requests().count(), 0);
    assert!(pile.is_behind());
    let troubles = pile.troubles().to_vec();
    assert_eq!(troubles.len(), 1);
    assert!(
        troubles[0].contains("more than 10000 folders"),
        "{troubles:?}"
    );
    pile.refresh().unwrap();
    for _ in 0..4 {
        assert_eq!(pile.requests().count(), 1, "it stays, whosever turn it is");
        assert_eq!(pile.troubles(), troubles);
        pile.refresh().unwrap();
    }
}

#[tokio::test]
async fn very_many_files_in_a_folder_are_told_of_and_answers_hide_no_request() {
    let (announcement, scratch) = announcement().await;
    let id = announcement.request.id;
    let place = folder(scratch.path(), announcement.request.session.as_str());
    fs::create_dir_all(&place).unwrap();
    for n in 0..100_001 {
        let name = format!("{id}.{n:032x}.answer.json");
        fs::File::create(place.join(name)).unwrap();
    }
    put(scratch.path(), &announcement, 0);
    let pile = Pile::below(scratch.path()).unwrap();
    assert_eq!(shown(&pile), [id]);
    let [trouble] = pile.troubles() else {
        panic!("{:?}", pile.troubles())
    };
    assert!(trouble.contains("more than 100000 files"), "{trouble}");
}

#[tokio::test]
async fn a_notice_from_the_future_stays_in_its_place() {
    let (announcement, scratch) = announcement().await;
    let session = announcement.request.session;
    let place = folder(scratch.path(), session.as_str());
    fs::create_dir_all(&place).unwrap();
    let lines: Vec<String> = [("forged", "2999"), ("genuine", "2026")]
        .iter()
        .map(|(what, year)| {
            let at = format!("{year}-01-01T00:00:00.000000Z");
            json!({"session": session, "at": at, "what": what}).to_string()
        })
        .collect();
    fs::write(place.join("notices.ndjson"), lines.join("\n")).unwrap();
    let pile = Pile::below(scratch.path()).unwrap();
    let whats: Vec<_> = pile.notices().iter().map(|one| one.what.clone()).collect();
    assert_eq!(whats, ["forged", "genuine"]);
}
