"""A routing policy in Python: prefers cached prefixes, and spreads what is left.

`score` gets the request and the servers as dictionaries of numbers and lists and returns one number
per server. It is called for every request, so it costs tens of microseconds each time.
"""


def score(request, servers):
    prompt = max(request["prompt_tokens"], 1)
    return [
        2.0 * cached / prompt - in_flight / 64.0
        for cached, in_flight in zip(servers["prefix_tokens"], servers["in_flight"])
    ]
