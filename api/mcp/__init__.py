"""The tools for agents, over the Model Context Protocol: one definition, served over HTTP and over standard input.

===============  ==================================================================
``tools.py``     the seven tools: name, description, arguments, result, schemas, what they do
``arguments.py`` what the tools take, checked as ``POST /query`` checks its body
``results.py``   what a call is given; the form and size of a result; errors as text
``server.py``    the protocol server over the tools
``endpoint.py``  ``/mcp``: streamable HTTP, stateless, inside the API
``stdio.py``     ``nornweave mcp``: standard input and output
===============  ==================================================================
"""
