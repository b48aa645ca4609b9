"""A broker with authentication: the console has a login, and shows only permitted things."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from barnabas.broker.security.acls.operations import Operation, ResourceType
from barnabas.testing import Broker
from tests.broker.security.access_users import (
    ADMIN,
    PASSWORD,
    UserClient,
    add_acls,
    allow,
    remove_acls,
    settings,
)
from tests.browser.looking import axe_check, screenshot

READER = "reader"
"""May see and read one topic."""
CONFIG = {**settings([ADMIN, READER]), "barnabas.http.listener": "127.0.0.1:0"}
SEEN, HIDDEN = "seen", "hidden"


@pytest.fixture(scope="module")
def secured():
    """A broker with access control, and two topics in it."""
    with Broker(config=CONFIG) as running:
        for topic in (SEEN, HIDDEN):
            running.create_topic(topic)
        running.url = "http://{}:{}".format(*running.server.http.address)
        with UserClient(running.address, ADMIN) as admin:
            acls = [
                *allow(READER, ResourceType.TOPIC, SEEN, Operation.DESCRIBE),
                *allow(READER, ResourceType.TOPIC, SEEN, Operation.READ),
            ]
            add_acls(admin, acls)
            running.admin = admin
            yield running


def logged_in(page, secured, user, password=PASSWORD, address="/topics"):
    page.goto(secured.url + address)
    page.get_by_label("User", exact=True).fill(user)
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Log in").click()


def topics(page):
    return page.get_by_role("region", name="Topics", exact=True).locator("tbody tr")


@pytest.fixture
def page(page, troubles):
    """A page that gets the errors of a missing login and of missing permissions."""
    troubles.tolerate("401")
    troubles.tolerate("403")
    return page


def test_nothing_is_shown_before_the_login(page, secured):
    page.goto(f"{secured.url}/topics")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    expect(page.get_by_text(SEEN, exact=True)).to_have_count(0)
    axe_check(page)
    screenshot(page, "login")
    logged_in(page, secured, READER, "wrong")
    expect(page.locator(".problem")).to_be_visible()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    axe_check(page)


def test_user_sees_permitted_topics_and_logs_out(page, context, secured):
    logged_in(page, secured, READER)
    expect(topics(page)).to_have_count(1)
    expect(topics(page)).to_contain_text(SEEN)
    expect(page.get_by_text(f"User:{READER}", exact=True)).to_be_visible()
    (cookie,) = context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    # An invisible topic yields the same error as a missing one.
    page.goto(f"{secured.url}/topics/{HIDDEN}/records")
    expect(page.locator(".problem").first).to_contain_text("denied")
    axe_check(page)
    screenshot(page, "denied")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert context.cookies() == []
    page.reload()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_button_without_permission_is_disabled_with_the_reason(page, secured):
    logged_in(page, secured, READER, address=f"/topics/{SEEN}/records")
    expect(page.get_by_role("heading", name=f"Records of {SEEN}")).to_be_visible()
    button = page.get_by_role("button", name="Produce a record", exact=True)
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(page.get_by_text(f"User:{READER} lacks WRITE on Topic:{SEEN}").first).to_be_visible()
    button.click(force=True)  # As a user would who does not see that it is greyed.
    expect(page.get_by_role("dialog")).to_have_count(0)
    axe_check(page)
    screenshot(page, "buttons-that-say-why")
    more = allow(READER, ResourceType.TOPIC, SEEN, Operation.WRITE)
    add_acls(secured.admin, more)
    try:
        page.reload()
        page.get_by_role("button", name="Produce a record…").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("value (optional)", exact=False).first.fill("mine")
        dialog.get_by_role("button", name="Preview").click()
        dialog.get_by_role("button", name="Produce a record", exact=True).click()
        expect(dialog.get_by_text("✓ Done:")).to_be_visible()
        assert [each.value for each in secured.records(SEEN).result] == [b"mine"]
    finally:
        remove_acls(secured.admin, more)


def test_an_operator_sees_all_and_may_do_all(page, secured):
    logged_in(page, secured, ADMIN)
    expect(topics(page)).to_have_count(2)
    page.goto(f"{secured.url}/topics/{HIDDEN}")
    expect(page.get_by_role("button", name="Delete the topic…")).to_be_visible()
    expect(page.locator(".refused")).to_have_count(0)


@pytest.fixture
def open_broker(request):
    """A broker whose HTTP port is not on a loopback address, and its address on this machine."""
    with Broker(config={"barnabas.http.listener": "0.0.0.0:0", **request.param}) as running:
        running.url = f"http://localhost:{running.server.http.address[1]}"
        yield running


@pytest.mark.parametrize("open_broker", [{}], indirect=True)
def test_page_without_any_login_says_what_to_set(page, open_broker):
    page.goto(f"{open_broker.url}/topics")
    expect(page.get_by_text("nobody can log in at the console: set barnabas.http")).to_be_visible()
    expect(page.locator("input[name=password]")).to_have_count(0)
    expect(page.get_by_role("button", name="Log in")).to_have_count(0)
    axe_check(page)
    screenshot(page, "no-login")


@pytest.mark.parametrize("open_broker", [{"barnabas.http.bearer.token": "t0ken"}], indirect=True)
def test_token_alone_opens_the_page(page, open_broker):
    open_broker.create_topic(SEEN)
    page.goto(f"{open_broker.url}/topics")
    expect(page.get_by_label("User", exact=True)).to_have_count(0)
    page.get_by_label("Token", exact=True).fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator(".problem")).to_be_visible()
    page.get_by_label("Token", exact=True).fill("t0ken")
    page.get_by_role("button", name="Log in").click()
    expect(topics(page)).to_contain_text(SEEN)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token", exact=True)).to_be_visible()
