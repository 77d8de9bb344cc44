"""The tools for agents, over the Model Context Protocol: one definition, served over HTTP and over standard input.

===============  ======================================================================
``tools.py``     the six tools: name, description, arguments, result, work
``arguments.py`` what the tools take, checked as ``POST /query`` checks its body
``schemas.py``   the same as JSON Schema, and that of the results
``questions.py`` what ``search`` and ``answer`` do
``lookups.py``   what ``fetch``, ``conflicts`` and ``status`` do
``calls.py``     what a call is given, and the gates that it passes
``results.py``   the form and the size of a result
``handles.py``   how a tool is asked for the rest
``links.py``     the URLs in results
``failures.py``  errors as text that says what to do
``server.py``    the protocol server over the tools
``endpoint.py``  ``/mcp``: streamable HTTP, stateless, inside the API
``stdio.py``     ``nornweave mcp``: standard input and output
===============  ======================================================================
"""
