"""Projects: several workspaces with one board, tips and inbox. Made by people."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel

from agent_bus import paging
from agent_bus.bus import Bus
from agent_bus.commands import Param, command
from agent_bus.operations import projects, workspaces

Project = Annotated[str, Param("The project's id, p_…; moa_projects_list shows it.", max_chars=40)]
Workspace = Annotated[str, Param("Absolute path of the project's folder, or ws_….", max_chars=1000)]
Name = Annotated[str, Param("1 to 80 characters.", max_chars=200)]


class Projects(BaseModel):
    """Projects with their workspaces, and the workspaces that have none."""

    projects: list[dict[str, Any]]
    workspaces: list[dict[str, Any]]
    cursor: str


class ProjectNamed(BaseModel):
    """One project."""

    projectId: str  # noqa: N815 (the name that clients know)
    name: str
    next: str


class Migrated(BaseModel):
    """How many entries a project took over."""

    projectId: str  # noqa: N815 (the name that clients know)
    workspace: str
    moved: int
    next: str


class Detached(BaseModel):
    """Which workspaces are on their own again."""

    workspaces: list[str]
    next: str


@command(group="board", writes=False)
def moa_projects_list(
    bus: Bus,
    limit: Annotated[int, Param("Rows at most.", low=1, high=1000)] = 100,
    cursor: Annotated[str, Param("From the last answer, for the next page.", max_chars=120)] = "",
) -> Projects:
    """List the projects with their workspaces, and the workspaces that belong to none."""
    docs = list(workspaces.listed(bus))
    members: dict[str, list[dict[str, Any]]] = {}
    for doc in docs:
        members.setdefault(str(doc.value.get("project") or ""), []).append(doc.value)
    rows = [("p", _project(p.value, members.get(p.name, []))) for p in workspaces.listed_projects(bus)]
    rows += [("w", {k: str(v.get(k, "")) for k in ("id", "cwd", "name")}) for v in members.get("", [])]
    named = [(kind, str(row.get("projectId") or row.get("id")), row) for kind, row in rows]
    rest = [one for one in named if not cursor or f"{one[0]}~{one[1]}" > cursor]
    found, more = paging.take(rest, limit, lambda one: {"kind": one[0], "name": one[1], "row": one[2]})
    last = f"{found[-1]['kind']}~{found[-1]['name']}" if more else ""
    return Projects(
        projects=[one["row"] for one in found if one["kind"] == "p"],
        workspaces=[one["row"] for one in found if one["kind"] == "w"],
        cursor=last,
    )


@command(group="board", writes=True, people=True)
def project_create(bus: Bus, name: Name) -> ProjectNamed:
    """Make a project, so that several workspaces can share a board, tips and an inbox."""
    made = projects.create(bus, name)
    hint = f"agent-bus project migrate FOLDER {made['projectId']} puts a workspace into it."
    return ProjectNamed(projectId=made["projectId"], name=made["name"], next=hint)


@command(group="board", writes=True, people=True, idempotent=True)
def project_migrate(bus: Bus, workspace: Workspace, project: Project) -> Migrated:
    """Put a workspace into a project: its board's entries with all versions come along. Repeat it after a crash."""
    moved, found = projects.migrate(bus, workspace, project)
    hint = "agent-bus project detach takes it out again; its own board stays as it was."
    return Migrated(projectId=project, workspace=found, moved=moved, next=hint)


@command(group="board", writes=True, people=True, idempotent=True)
def project_rename(bus: Bus, project: Project, name: Name) -> ProjectNamed:
    """Give a project another name."""
    value = projects.rename(bus, project, name)
    return ProjectNamed(projectId=project, name=value["name"], next="moa_projects_list shows all projects.")


@command(group="board", writes=True, people=True, idempotent=True)
def project_archive(bus: Bus, project: Project) -> Detached:
    """Hide a project and take its workspaces out of it; nothing is deleted."""
    return Detached(workspaces=projects.archive(bus, project), next="What was written there stays readable by its id.")


@command(group="board", writes=True, people=True, idempotent=True)
def project_detach(bus: Bus, workspace: Workspace) -> Detached:
    """Take a workspace out of its project; its own board is as it was before."""
    return Detached(workspaces=projects.detach(bus, workspace), next="moa_projects_list shows all workspaces.")


def _project(value: dict[str, Any], members: list[dict[str, Any]]) -> dict[str, Any]:
    shown = {"projectId": str(value.get("projectId", "")), "name": str(value.get("name", ""))}
    aliases = [str(m.get("id", "")) for m in members]
    return shown | {"aliases": paging.some(aliases), "cwds": paging.some([str(m.get("cwd", "")) for m in members])}
