import { vi } from "./vi";
import { system } from "./vi.system";

export const texts = { ...vi, ...system };
