"""Security: users, ACLs and quotas are created and removed; a user without permission sees the
reason."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from barnabas.testing import Broker
from tests.broker.security.access_users import ADMIN, settings
from tests.browser.looking import axe_check, screenshot
from tests.browser.test_login import logged_in
from tests.browser.test_topic import done, opened, rows

READER = "reader"
CONFIG = {
    **settings([ADMIN, READER]),
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "barnabas.http.listener": "127.0.0.1:0",
}
SECRET = "a-secret-of-alice"


@pytest.fixture(scope="module")
def secured():
    """A broker with access control, and only the users of its configuration."""
    with Broker(config=CONFIG) as running:
        running.url = "http://{}:{}".format(*running.server.http.address)
        yield running


@pytest.fixture
def page(page, troubles):
    """A page that gets the errors of a missing login and of missing permissions."""
    troubles.tolerate("401")
    troubles.tolerate("403")
    return page


def test_a_user_is_made_gets_a_rule_and_a_limit_and_goes(page, context, secured):
    logged_in(page, secured, ADMIN, address="/security")
    expect(page.get_by_text("No users yet.")).to_be_visible()
    dialog = opened(page, "Set a user's password")
    dialog.get_by_label("user", exact=False).first.fill("alice")
    field = dialog.get_by_label("password", exact=False).first
    expect(field).to_have_attribute("type", "password")
    field.fill(SECRET)
    done(dialog, "Set a user's password")
    expect(rows(page, "Users")).to_contain_text("SCRAM-SHA-512")

    dialog = opened(page, "Add an ACL")
    dialog.get_by_label("principal", exact=False).first.fill("User:alice")
    dialog.get_by_label("operation", exact=False).select_option("DESCRIBE")
    dialog.get_by_label("resource type", exact=False).select_option("Topic")
    dialog.get_by_label("name", exact=False).first.fill("orders.")
    dialog.get_by_label("pattern", exact=False).select_option("PREFIXED")
    done(dialog, "Add an ACL")
    expect(rows(page, "ACLs")).to_contain_text("orders. and names with this prefix")

    dialog = opened(page, "Set quotas")
    dialog.get_by_label("user (optional)", exact=False).fill("alice")
    dialog.get_by_label("quotas", exact=False).fill("producer_byte_rate=1000000")
    done(dialog, "Set quotas")
    expect(rows(page, "Quotas")).to_contain_text("1,000,000")
    axe_check(page)
    screenshot(page, "security")

    other = context.browser.new_context()
    try:
        alices = other.new_page()
        logged_in(alices, secured, "alice", SECRET)
        expect(alices.get_by_text("User:alice", exact=True)).to_be_visible()
    finally:
        other.close()

    done(opened(page, "Delete ACL"), "Delete the ACL", named="User:alice")
    expect(rows(page, "ACLs")).to_have_count(0)
    done(opened(page, "Delete"), "Delete the user", named="alice")
    expect(rows(page, "Users")).to_have_count(0)
    dialog = opened(page, "Change")
    dialog.get_by_label("quotas", exact=False).fill("producer_byte_rate")
    done(dialog, "Set quotas")
    expect(rows(page, "Quotas")).to_have_count(0)


def test_user_without_permission_sees_the_missing_permission(page, secured):
    logged_in(page, secured, READER, address="/security")
    expect(page.get_by_text(f"User:{READER} lacks ALTER on Cluster:").first).to_be_visible()
    expect(page.locator(".problem")).to_have_count(3)
    axe_check(page)


def test_without_access_control_it_says_what_holds(page, broker):
    page.goto(f"{broker.url}/security")
    expect(page.get_by_text("Without an authorizer every user has all permissions")).to_be_visible()
    axe_check(page)
