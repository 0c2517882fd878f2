"""What is logged of an error that is our own fault."""

from gateway.api.serve import _places


def test_an_internal_error_is_logged_by_its_places_and_not_by_what_was_there() -> None:
    """The log had the exception's words a second time, without a place to look at."""
    prompt = "tell nobody"
    try:
        dict[str, int]()[prompt]
    except KeyError as error:
        [place] = _places(error)
    assert place.startswith("test_serve.py:")
    assert place.endswith("test_an_internal_error_is_logged_by_its_places_and_not_by_what_was_there")
    assert prompt not in place
