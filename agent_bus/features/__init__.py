"""Tool groups, one file each. Tools are listed in this order, the main job first; others follow by name."""

ORDER = (
    "dispatching",
    "tasks",
    "reports",
    "agents",
    "context",
    "system",
    "queue",
    "approvals",
    "board",
    "projects",
    "tips",
    "handoffs",
    "presence",
    "debate",
    "meetings",
    "rooms",
    "room_people",
)
