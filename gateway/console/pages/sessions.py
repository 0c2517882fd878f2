"""Where somebody is signed in, and ending what they don't know."""

from gateway.access.sessions import end, list_sessions
from gateway.console.answers import Answer, Moved, NotHere, Shown
from gateway.console.visit import Visit


def show(visit: Visit) -> Answer:
    found = list_sessions(visit.connection, visit.who.user_id, visit.now)
    return Shown("sessions.html", {"sessions": found})


def end_one(visit: Visit) -> Answer:
    if not end(visit.connection, visit.id_in_path(), visit.who.user_id, now=visit.now, actor=visit.who.actor):
        raise NotHere
    return Moved("/sessions")
