"""The web console: pages for developers, admins and operators, loaded when somebody first looks at one."""
