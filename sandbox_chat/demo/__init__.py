"""The offline demo model: a Messages endpoint on loopback with a small rule-based agent.

``server`` is the endpoint, ``wire`` and ``reply`` the API's two directions. Answers come from ``model`` (rules,
see ``intents``, ``steps``, ``talk``, ``code``) or, in tests, from ``script``. Nothing is imported here: each user takes
what it needs.
"""
