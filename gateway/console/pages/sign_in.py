"""Signing in with email and password, and out again."""

from gateway.access.sessions import begin, end, viewer_of
from gateway.access.sign_in_tries import DEVICE_SECONDS, SignInTries, TooManyTries
from gateway.access.users import PasswordWrong, prove
from gateway.console.answers import Answer, Cookie, Moved, Shown
from gateway.console.frame import home_of
from gateway.console.visit import DEVICE, SESSION, Visit
from gateway.valkey import ValkeyRefused, ValkeyUnavailable

_WITHOUT_VALKEY = "Nobody can sign in at the moment: Valkey does not answer, so guesses can't be counted. Try again in a minute."


def show(visit: Visit) -> Answer:
    if visit.viewer is not None:
        return Moved(home_of(visit.viewer))
    return _asked(visit, None)


def sign_in(visit: Visit) -> Answer:
    email, password = visit.form.get("email", ""), visit.form.get("password", "")
    tries, device = SignInTries(visit.house.valkey, visit.pepper), visit.cookies.get(DEVICE, "")
    try:
        visit.wait(tries.count(email, visit.address, device))
        user_id = prove(visit.connection, email, password)
        visit.wait(tries.succeeded(email, visit.address, device))
    except (PasswordWrong, TooManyTries) as refused:
        return _asked(visit, str(refused), 429 if isinstance(refused, TooManyTries) else 422)
    except (ValkeyUnavailable, ValkeyRefused, TimeoutError):
        return _asked(visit, _WITHOUT_VALKEY, 503)
    token = begin(visit.connection, user_id, pepper=visit.pepper, now=visit.now, address=visit.address, agent=visit.agent)
    viewer = viewer_of(visit.connection, token, pepper=visit.pepper, now=visit.now)
    assert viewer is not None
    cookies = (Cookie(SESSION, token), Cookie(DEVICE, tries.device_of(email), DEVICE_SECONDS))
    return Moved(_within(visit.form.get("next", "")) or home_of(viewer), cookies)


def sign_out(visit: Visit) -> Answer:
    end(visit.connection, visit.who.session_id, visit.who.user_id, now=visit.now, actor=visit.who.actor)
    return Moved("/sign-in", (Cookie(SESSION, "", 0),))


def _asked(visit: Visit, wrong: str | None, status: int = 200) -> Shown:
    given = visit.form or visit.query
    facts = {"wrong": wrong, "email": visit.form.get("email", ""), "next": _within(given.get("next", "")) or ""}
    return Shown("sign_in.html", facts, status)


def _within(path: str) -> str | None:
    """A path of this site; nothing that a browser could take for another host."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() and "\\" not in path
    return path if is_ours else None
