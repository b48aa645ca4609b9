"""The users of SCRAM: made at a start, found by name, and what is said of those that are not."""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.config.scram_credentials import (
    MalformedCredentials,
    parse_scram_credentials,
)
from barnabas.broker.security.sasl.scram_users import Owner, ScramUsers
from barnabas.protocol.sasl.scram import (
    MECHANISMS,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    credential_of,
    salted_password,
)
from barnabas.storage.metastore.interface import ScramRow
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore

ALICE = "SCRAM-SHA-256=[name=alice,password=secret]"
LIKE_KAFKAS = re.compile(rb"[0-9a-z]{20,26}")


@pytest.fixture
def metastore():
    store = SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id="c")
    yield store
    store.close()


def loaded(metastore, text="", iterations=4096):
    users = ScramUsers(iterations)
    users.load(metastore.load().scram_credentials)
    users.keep_secret(metastore)
    created = users.create_missing(parse_scram_credentials(text), metastore)
    return users, [owner.user for owner in created]


def test_users_of_the_configuration_are_made_once(metastore):
    users, created = loaded(metastore, f"{ALICE},SCRAM-SHA-512=[name=alice,password=other]")
    assert created == ["alice", "alice"]
    assert users.iterations_of("alice") == [(SCRAM_SHA_256, 4096), (SCRAM_SHA_512, 4096)]
    found = users.finder(SCRAM_SHA_256)("alice")
    salted = salted_password(SCRAM_SHA_256, "secret", found.salt, 4096)
    assert found == credential_of(SCRAM_SHA_256, salted, found.salt, 4096)
    assert LIKE_KAFKAS.fullmatch(found.salt)
    # The password of the configuration is for the first start only.
    again, created = loaded(metastore, "SCRAM-SHA-256=[name=alice,password=changed]", 8192)
    assert created == []
    assert again.finder(SCRAM_SHA_256)("alice") == found


def test_salts_and_salted_passwords_may_be_given(metastore):
    salted = salted_password(SCRAM_SHA_256, "secret", b"salt", 8192)
    from base64 import b64encode

    users, _ = loaded(
        metastore,
        f'SCRAM-SHA-256=[name="a",iterations=8192,salt="{b64encode(b"salt").decode()}",'
        f"saltedpassword={b64encode(salted).decode()}]",
    )
    assert users.finder(SCRAM_SHA_256)("a") == credential_of(SCRAM_SHA_256, salted, b"salt", 8192)


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=lambda each: each.name)
def test_unknown_user_has_stable_salt(metastore, mechanism):
    users, _ = loaded(metastore)
    found = users.finder(mechanism)("nobody")
    assert LIKE_KAFKAS.fullmatch(found.salt)
    assert found.iterations == 4096
    assert len(found.stored_key) == len(found.server_key) == mechanism.digest_bytes
    again, _ = loaded(metastore)
    assert again.finder(mechanism)("nobody").salt == found.salt
    assert again.finder(mechanism)("somebody").salt != found.salt


def test_another_cluster_and_another_mechanism_have_other_salts(metastore):
    users, _ = loaded(metastore)
    others = ScramUsers()
    salts = {
        users.finder(SCRAM_SHA_256)("nobody").salt,
        users.finder(SCRAM_SHA_512)("nobody").salt,
        others.finder(SCRAM_SHA_256)("nobody").salt,
    }
    assert len(salts) == 3


def test_unknown_user_has_iterations_of_new_users(metastore):
    users, _ = loaded(metastore, ALICE, 8192)
    find = users.finder(SCRAM_SHA_256)
    assert find("alice").iterations == find("nobody").iterations == 8192


def test_a_credential_of_few_iterations_is_as_good_as_none(metastore, caplog):
    metastore.change_scram_credentials(
        [ScramRow("weak", "SCRAM-SHA-256", b"salt", b"stored", b"server", 4095)], []
    )
    users, _ = loaded(metastore)
    assert users.finder(SCRAM_SHA_256)("weak").salt != b"salt"
    assert not users.has_users_of("SCRAM-SHA-256")
    assert users.iterations_of("weak") == [(SCRAM_SHA_256, 4095)]
    assert "user='weak' cannot log in with SCRAM-SHA-256" in caplog.text


def test_which_credentials_a_change_has_ended(metastore):
    users, _ = loaded(metastore, ALICE)
    row = ScramRow("alice", "SCRAM-SHA-256", b"s", b"k", b"v", 4096)
    owner = Owner("alice", "SCRAM-SHA-256")
    assert users.change([row], []) == {owner}
    assert users.change([row], []) == set()
    assert users.change([], [owner, Owner("bob", "SCRAM-SHA-256")]) == {owner}
    assert len(users) == 0


# -------------------------------------------------------------------------- the key's own grammar


@pytest.mark.parametrize(
    "text",
    [
        "SCRAM-SHA-256=[name=a,password=p],SCRAM-SHA-512=[name=b,password=q]",
        " SCRAM-SHA-256 = [ name = a , password = p ] ;\n SCRAM-SHA-512=[name=b,password=q]",
        'SCRAM-SHA-256=[name="a",password="p"],SCRAM-SHA-512=[password="q",name="b"]',
    ],
)
def test_credentials_as_users_write_them(text):
    found = parse_scram_credentials(text)
    assert [(each.mechanism.name, each.user, each.password) for each in found] == [
        ("SCRAM-SHA-256", "a", "p"),
        ("SCRAM-SHA-512", "b", "q"),
    ]


@pytest.mark.parametrize("text", ["", "  \n "])
def test_no_credentials(text):
    assert parse_scram_credentials(text) == []


def test_quoted_password_can_have_commas_and_brackets():
    (found,) = parse_scram_credentials('SCRAM-SHA-256=[name="a]b",password="x,y=[z];"]')
    assert (found.user, found.password) == ("a]b", "x,y=[z];")
    assert "x,y" not in repr(found)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hidden", "credential 1 is not of the form"),
        ("SCRAM-SHA-1=[name=a,password=hidden]", "credential 1 is of no SCRAM mechanism"),
        ("SCRAM-SHA-256=[password=hidden]", "credential 1 has no name"),
        ("SCRAM-SHA-256=[name=a]", "a needs either a password or a saltedpassword"),
        ("SCRAM-SHA-256=[name=a,password=]", "a needs either a password"),
        ("SCRAM-SHA-256=[name=a,password=hidden,iterations=4095]", "must be from 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=hidden,iterations=x]", "must be from 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=hidden,iterations=\u0664\u0660\u0669\u0666]", "from 4096"),
        ("SCRAM-SHA-256=[name=a,password=hidden,salt=*]", "salt of credential 1 is not base64"),
        ("SCRAM-SHA-256=[name=a,password=hidden,salt=]", "salt of credential 1 is empty"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=aGlkZGVu]", "needs a salt, and 32 bytes"),
        ("SCRAM-SHA-256=[name=a,password=hidden,saltedpassword=aGlkZGVu]", "needs either"),
        ("SCRAM-SHA-256=[name=a,password=hidden,colour=red]", "nothing else"),
        ("SCRAM-SHA-256=[name=a,name=b,password=hidden]", "once, nothing else"),
        ("SCRAM-SHA-256=[name=a,password=hid,den]", "must consist of key=value, by commas"),
        ('SCRAM-SHA-256=[name=a,password="hid"den]', "must consist of key=value, by commas"),
        ('SCRAM-SHA-256=[name=a,password="hidden]', "credential 1 is not of the form"),
        (f"{ALICE} SCRAM-SHA-512=[name=a,password=hidden]", "credential 1 is followed by no comma"),
        (f"{ALICE},{ALICE}", "alice occurs twice with SCRAM-SHA-256"),
        (f"{ALICE},hidden", "credential 2 is not of the form"),
    ],
)
def test_credential_error_omits_passwords(text, problem):
    with pytest.raises(MalformedCredentials) as caught:
        parse_scram_credentials(text)
    assert problem in str(caught.value)
    assert "hidden" not in str(caught.value)


@given(st.text(st.sampled_from('SCRAM-H256=[],;"name password\n'), max_size=60))
def test_any_text_is_read_or_refused(text):
    for each in (text, f"SCRAM-SHA-256=[{text}]"):
        with contextlib.suppress(MalformedCredentials):
            parse_scram_credentials(each)
