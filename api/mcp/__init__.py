"""The tools for agents, over the Model Context Protocol: one definition, served over HTTP and over standard input.

===============  ======================================================================
``tools.py``     the five tools: name, description, arguments, result, what is done
``arguments.py`` what the tools take, checked as ``POST /query`` checks its body
``handles.py``   how a tool is asked for the rest
``links.py``     the URLs in results
``failures.py``  errors as text that says what to do
``server.py``    the protocol server over the tools
``endpoint.py``  ``/mcp``: streamable HTTP, stateless, inside the API
``stdio.py``     ``nornweave mcp``: standard input and output
===============  ======================================================================
"""
